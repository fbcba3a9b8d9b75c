"""``strikeout completion``: the script that completes commands and options in a shell."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

FILES = {"bash": "~/.bashrc", "zsh": "~/.zshrc", "fish": "~/.config/fish/completions/strikeout.fish"}


@click.command("completion")
@click.argument("shell", type=click.Choice(list(FILES)))
def command(shell: str) -> None:
    """Print the script that completes strikeout's commands and options in SHELL.

    For example: strikeout completion bash >> ~/.bashrc
    """
    from strikeout.cli.group import COMPLETE, NAME, strikeout

    chosen = get_completion_class(shell)
    if chosen is None:
        raise click.UsageError(f"This click cannot complete in {shell}.")
    script = chosen(strikeout, {}, NAME, COMPLETE)
    click.echo(script.source_template % script.source_vars())
