"""Settings: an option, else a variable STRIKEOUT_NAME, else ``strikeout.toml``, else the default.

The file is searched in the working directory and then upwards; only the first one found is used.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from strikeout.errors import UsageError
from strikeout.quotes.toml_files import SHOWN, read_toml, shown

FILE = "strikeout.toml"
PREFIX = "STRIKEOUT_"


@dataclass(frozen=True)
class Setting:
    """The values of a setting: one of some words, a number, or text."""

    words: tuple[str, ...] = ()
    kind: type = str
    least: float = 0.0
    most: float | None = None
    is_read_from_the_environment: bool = False  # by a package below the command line, which reads variables only

    def read(self, value: Any) -> Any:
        """Return the value as it is used; the text of a variable is read as a number if the setting is one."""
        if self.kind is dict:
            return self._pairs(value)
        if self.kind is str:
            if not isinstance(value, str) or not value.isprintable() or not value.strip() or self._is_other(value):
                raise ValueError(f"give one of {', '.join(self.words)}" if self.words else "give a text")
            return value
        try:
            number = self.kind(value) if isinstance(value, str) else value
        except ValueError:
            number = None
        fits = type(number) in (int, self.kind)
        if not fits or not self.least <= number or not (self.most is None or number <= self.most):
            noun = "a whole number" if self.kind is int else "a number"
            raise ValueError(f"give {noun} from {self.least:g}" + ("" if self.most is None else f" to {self.most:g}"))
        return self.kind(number)

    def _is_other(self, word: str) -> bool:
        return bool(self.words) and word not in self.words

    @staticmethod
    def _pairs(value: Any) -> list[tuple[str, Any]]:
        """Return the pairs of a table of the file, or of the words CODE=WHAT of a variable."""
        if isinstance(value, str):
            split = [word.partition("=") for word in value.split()]
            value = {name: what for name, equals, what in split if name and equals and what}
            if len(value) < len(split):
                raise ValueError("give CODE=WHAT, with blanks between several")
        if not isinstance(value, dict) or not all(isinstance(what, (int, float, str)) for what in value.values()):
            raise ValueError("give a table of codes, each with a limit, off or reject")
        return list(value.items())


SETTINGS: Mapping[str, Setting] = {
    "checks": Setting(kind=dict),
    "feller": Setting(words=("warn", "enforce", "ignore")),
    "kernel": Setting(words=("native", "numpy"), is_read_from_the_environment=True),
    "key_file": Setting(is_read_from_the_environment=True),
    "loss": Setting(words=("squared", "huber", "soft-l1", "cauchy", "tukey")),
    "max_reject": Setting(kind=float, most=1.0),
    "residual": Setting(words=("price", "implied_vol")),
    "select": Setting(words=("all", "otm")),
    "starts": Setting(kind=int, least=1.0),
    "threads": Setting(kind=int, least=1.0, is_read_from_the_environment=True),
    "weights": Setting(words=("given", "none", "relative", "vega", "spread", "vol-spread")),
    "who": Setting(),
}


@dataclass(frozen=True)
class Configuration:
    """The values of variables and the file, and where each comes from; settings at their defaults are not in it."""

    values: Mapping[str, Any] = field(default_factory=dict)
    origins: Mapping[str, str] = field(default_factory=dict)
    path: Path | None = None  # of the file


def configuration(*, folder: Path | None = None, variables: Mapping[str, str] | None = None) -> Configuration:
    """Return the settings for a command run in this folder with these variables; by default the current ones."""
    path = found_from(_here() if folder is None else folder)
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for name, value in () if path is None else _content(path).items():
        values[name], origins[name] = _read(name, value, f"{path}: {name}"), str(path)
        if name == "key_file" and path is not None:
            values[name] = str(path.parent / values[name])  # a file's relative paths start where the file is
    for name in SETTINGS:
        variable = variable_of(name)
        text = (os.environ if variables is None else variables).get(variable)
        if text:
            values[name], origins[name] = _read(name, text, variable), variable
    return Configuration(values, origins, path)


def found_from(folder: Path) -> Path | None:
    """Return the file of this folder, or that of the nearest folder above; None if there is none."""
    return next((place / FILE for place in (folder, *folder.parents) if _is_file(place / FILE)), None)


def _here() -> Path:
    try:
        return Path.cwd()
    except OSError as error:
        raise UsageError(
            f"The working folder cannot be read ({error.strerror}). Change to one that is there."
        ) from error


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a folder above without permission to look into
        return False


def variable_of(name: str) -> str:
    """Return the environment variable of a setting."""
    return PREFIX + name.upper()


def hand_down(configured: Configuration) -> None:
    """Set the variables that packages below the command line read, unless they are set already."""
    for name, value in configured.values.items():
        if SETTINGS[name].is_read_from_the_environment:
            os.environ.setdefault(variable_of(name), str(value))


def _content(path: Path) -> dict[str, Any]:
    content = read_toml(path, str(path))
    unknown = sorted(set(content) - set(SETTINGS))
    if unknown:
        raise UsageError(
            f"{path}: {', '.join(unknown)[:SHOWN]}: not a setting. The settings are {', '.join(SETTINGS)}.",
            path=str(path),
            unknown=unknown,
        )
    return content


def _read(name: str, value: Any, where: str) -> Any:
    try:
        return SETTINGS[name].read(value)
    except ValueError as error:
        raise UsageError(f"{where} is {shown(value)}: {error}.", setting=name) from error
