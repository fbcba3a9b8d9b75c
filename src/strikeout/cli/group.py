"""The command ``strikeout`` itself: its subcommands, imported on demand, and the one place where errors end."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from importlib import import_module
from typing import Any, NoReturn

import click

from strikeout import __version__
from strikeout.cli.exits import EXIT_CODES, conclude

NAME = "strikeout"
COMPLETE = "_STRIKEOUT_COMPLETE"

# Command -> the module whose `command` it is, and the line shown in the help, which must not import the module.
COMMANDS = {
    "demo": ("strikeout.cli.demo", "See three bad days spoil a calibration, found, struck out and checked."),
    "sample": ("strikeout.cli.sample", "Write a file of made-up quotes to try things on."),
    "inspect": ("strikeout.cli.inspect", "Say how a file of quotes is understood: columns, units, bad rows."),
    "profiles": ("strikeout.cli.profiles", "List the vendors' layouts that are known, or show one."),
    "rules": ("strikeout.cli.rules", "List the rules quotes are held to, or count what each finds in a file."),
    "rule": ("strikeout.cli.rule", "Explain one rule by its code."),
    "calibrate": ("strikeout.cli.calibrate", "Calibrate a model to a file of quotes, or to a book."),
    "plot": ("strikeout.cli.plot", "Draw smiles, residuals, total variance or influence; or their numbers as JSON."),
    "influence": ("strikeout.cli.influence", "Say which quotes or groups of quotes the parameters hang on."),
    "compare-models": ("strikeout.cli.compare_models", "Put several models side by side on the same quotes."),
    "forget": ("strikeout.cli.forget", "Strike quotes out of a calibration, as if they had never been seen."),
    "verify": ("strikeout.cli.verify", "Check a book, or a certificate against the retained quotes."),
    "paper": ("strikeout.cli.paper", "Run the paper's experiments again and write a report of them."),
    "init": ("strikeout.cli.init", "Make a new book, where quotes, calibrations and a record of changes are kept."),
    "import": ("strikeout.cli.importing", "Append a file of quotes to a book."),
    "status": ("strikeout.cli.status", "Say what a book holds and whether its calibration is current."),
    "apply": ("strikeout.cli.apply", "Do what a plan of forget says."),
    "restore": ("strikeout.cli.restore", "Bring back the quotes of a forget."),
    "learn": ("strikeout.cli.learn", "Append quotes to a book and calibrate it with them, in one step."),
    "roll": ("strikeout.cli.roll", "Learn new quotes and forget old ones, in one step."),
    "erase": ("strikeout.cli.erase", "Make quotes of a book unrecoverable; rehearses unless told otherwise."),
    "log": ("strikeout.cli.log", "List who did what to a book, when and why."),
    "certificate": ("strikeout.cli.certificate", "Show the certificate of an entry of the log."),
    "compare": ("strikeout.cli.compare", "Say whether two books know the same."),
    "export": ("strikeout.cli.export", "Write a book's quotes or results for other programs."),
    "summary": ("strikeout.cli.summary", "Say in a few lines what a book, its calibration and its quotes are."),
    "report": ("strikeout.cli.report", "Write one page on a book: fit, influence, log and certificate."),
    "request": ("strikeout.cli.request", "Ask for a strike-out or an erasure that a second person approves."),
    "requests": ("strikeout.cli.requests", "List what was asked for, and who decided."),
    "approve": ("strikeout.cli.approve", "Approve what somebody else asked for."),
    "reject": ("strikeout.cli.reject", "Reject what somebody else asked for."),
    "rotate-key": ("strikeout.cli.rotate_key", "Give a book a new key to sign its ledger with."),
    "doctor": ("strikeout.cli.doctor", "Look over this installation, its settings and a book."),
    "completion": ("strikeout.cli.completion", "Print the script that completes commands in your shell."),
}
UNCONFIGURED = ("completion", "demo", "doctor")  # these run whatever strikeout.toml says


class Commands(click.Group):
    """A group that knows its commands by name and imports each only when it runs."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(COMMANDS[cmd_name][0]).command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command, and beneath its flags what variables and strikeout.toml say."""
        near = get_close_matches(args[0], COMMANDS, n=1) if args and args[0] not in COMMANDS else []
        if near:
            ctx.fail(f"No such command {args[0]!r}. Did you mean {near[0]!r}?")
        name, command, rest = super().resolve_command(ctx, args)
        if name is not None and name not in UNCONFIGURED:
            from strikeout.cli.configuration import configuration, hand_down

            configured = configuration()
            hand_down(configured)
            ctx.default_map = {name: dict(configured.values)}
        return name, command, rest

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])

    def main(self, args: Sequence[str] | None = None, *_: Any, **__: Any) -> NoReturn:
        """Runs a command and ends the process: with its exit code, or with an error told in a sentence.

        In place of click's own, which ends a broken pipe with 1 and interruptions and errors in its own words.
        """
        words = list(sys.argv[1:] if args is None else args)
        try:
            _complete_if_asked(self)
            with self.make_context(NAME, words) as context:
                code = self.invoke(context)
            sys.stdout.flush()
        except BaseException as error:
            code = conclude(error, as_json="--json" in words)
        sys.exit(code if isinstance(code, int) else 0)


def _complete_if_asked(group: click.Group) -> None:
    """Answers the shell, which asks through an environment variable, and ends; nothing where it did not ask."""
    instruction = os.environ.get(COMPLETE)
    if instruction:
        from click.shell_completion import shell_complete

        sys.exit(shell_complete(group, {}, NAME, COMPLETE, instruction))


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: " + ", ".join(f"{code} {meaning}" for code, meaning in EXIT_CODES.items()) + ".",
)
@click.version_option(__version__, prog_name=NAME, message="%(prog)s %(version)s")
def strikeout() -> None:
    """Calibrate option models to quotes, and strike quotes out again as if they had never been seen."""
