"""Options that several commands share, and the small languages in them: NAME=VALUE and NAME=LOW:HIGH."""

from __future__ import annotations

from math import isfinite
from typing import Any

import click


class Named(click.ParamType):  # type: ignore[type-arg]  # generic only in newer clicks
    """``NAME=VALUE`` as a pair (name, number)."""

    name = "NAME=VALUE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, Any]:
        if not isinstance(value, str):
            given: tuple[str, Any] = value
            return given
        name, equals, rest = value.partition("=")
        if not equals or not name.strip() or not rest.strip():
            self.fail(f"{value!r} is not of the form {self.name}.", param, ctx)
        return name.strip(), self.parsed(rest.strip(), value, param, ctx)

    def parsed(self, rest: str, whole: str, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return self.number(rest, whole, param, ctx)

    def number(self, text: str, whole: str, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            number = float(text)
        except ValueError:
            number = float("nan")
        if not isfinite(number):
            self.fail(f"{whole!r}: {text!r} is not a finite number; the form is {self.name}.", param, ctx)
        return number


class NamedRange(Named):
    """``NAME=LOW:HIGH`` as a pair (name, (low, high))."""

    name = "NAME=LOW:HIGH"

    def parsed(self, rest: str, whole: str, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        low, colon, high = rest.partition(":")
        if not colon:
            self.fail(f"{whole!r} is not of the form {self.name}.", param, ctx)
        return self.number(low, whole, param, ctx), self.number(high, whole, param, ctx)


class NamedText(Named):
    """``NAME=VALUE`` as a pair (name, value), a number where it reads as one and text where not."""

    def parsed(self, rest: str, whole: str, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ARG002
        try:
            return float(rest)
        except ValueError:
            return rest


class Distinct(click.Option):
    """A repeatable NAME=... option whose value is a mapping; the same name twice is refused."""

    def process_value(self, ctx: click.Context, value: Any) -> dict[str, Any]:
        pairs = super().process_value(ctx, value) or ()
        names = [name for name, _ in pairs]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise click.BadParameter(f"{twice[0]} is given twice.", ctx=ctx, param=self)
        return dict(pairs)


file_argument = click.argument("file", type=click.Path(path_type=str))
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object, for programs.")
check_option = click.option(
    "--check",
    "checks",
    cls=Distinct,
    type=NamedText(),
    multiple=True,
    metavar="CODE=WHAT",
    help="How strict a rule is: a limit, off, reject, or both as in Q208=0.3,reject; all=off turns all off.",
)
profile_option = click.option(
    "--profile",
    metavar="NAME|TOML",
    help="The layout of the file: a name of `strikeout profiles`, or a .toml file; by default found by its columns.",
)
constant_option = click.option(
    "--constant",
    "constants",
    cls=Distinct,
    type=NamedText(),
    multiple=True,
    help="A canonical column the file does not have, with one value for all rows, such as rate=0.",
)
