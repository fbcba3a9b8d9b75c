"""Walks the command line: every command, with the words that call it and the options it takes."""

from __future__ import annotations

import pkgutil
import re
from collections.abc import Iterator
from importlib import import_module
from itertools import chain

import click

from strikeout import cli


def root_command() -> click.Group:
    """The group behind `strikeout`: in the room itself or, where that imports it on demand, in a file of the room."""
    files = (import_module(f"{cli.__name__}.{module.name}") for module in pkgutil.iter_modules(cli.__path__))
    for room in chain([cli], files):
        groups = [value for value in vars(room).values() if isinstance(value, click.Group)]
        if groups:
            return groups[0]
    raise AssertionError("strikeout.cli holds no click group")


def commands(group: click.Group, path: str = "strikeout") -> Iterator[tuple[str, click.Command]]:
    """Every command with the words that call it; works for groups that import their commands on demand."""
    context = click.Context(group, info_name=path)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None, f"{path} lists {name!r} but cannot give it"
        yield f"{path} {name}", command
        if isinstance(command, click.Group):
            yield from commands(command, f"{path} {name}")


def misused(group: click.Group, words: list[str]) -> list[str]:
    """What is wrong with a command line: a command or an option that does not exist."""
    if not words or words[0] in ("--help", "--version"):
        return []
    context = click.Context(group)
    command = group.get_command(context, words[0])
    if command is None:
        return [f"there is no command {words[0]!r}"]
    if isinstance(command, click.Group):
        return misused(command, words[1:])
    known = {name for option in command.params for name in (*option.opts, *option.secondary_opts)} | {"--help"}
    given = {word.partition("=")[0] for word in words[1:] if re.match(r"--?[a-z]", word)}
    return [f"{words[0]} has no option {option}" for option in sorted(given - known)]
