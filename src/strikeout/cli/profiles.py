"""``strikeout profiles``: the vendors' layouts that are known, or one of them in full."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from strikeout.cli import exits, terminal
from strikeout.cli.options import json_option

if TYPE_CHECKING:
    from strikeout.quotes.profile import Origin, Profile


@click.command("profiles")
@click.argument("name", required=False)
@json_option
def command(name: str | None, as_json: bool) -> int:
    """List the layouts of files that are known; of NAME (or a .toml file of your own) say what each column means."""
    from strikeout.quotes.profile import profile_of, shipped_profiles

    if name is None:
        every = list(shipped_profiles().values())
        if as_json:
            terminal.show_json({"profiles": [described(profile) for profile in every]})
        else:
            terminal.show(
                terminal.table(("profile", "files"), [(one.name, one.title) for one in every], whole=(0,)),
                "\nAny other file is read by strikeout's own column names.",
            )
            terminal.hint("strikeout profiles NAME", "strikeout inspect FILE")
        return exits.DONE
    profile = profile_of(name)
    if as_json:
        terminal.show_json(described(profile))
    else:
        rows = [(canonical, side, column, told) for canonical, side, column, told, _ in _rows(profile)]
        terminal.show(
            f"{profile.name}: {profile.title}\n{profile.documented}\n",
            terminal.table(("canonical column", "of", "column of the file", "how"), rows, whole=(0,)),
        )
    return exits.DONE


def described(profile: Profile) -> dict[str, Any]:
    """The profile as plain values."""
    return {
        "name": profile.name,
        "title": profile.title,
        "documented": profile.documented,
        "wide": profile.is_wide,
        "columns": [
            {"canonical": canonical, "of": side or None, "column": column, "how": told, "optional": optional}
            for canonical, side, column, told, optional in _rows(profile)
        ],
    }


def _rows(profile: Profile) -> list[tuple[str, str, str, str, bool]]:
    sides: list[tuple[str, dict[str, Origin]]] = [
        ("", dict(profile.columns)),
        ("call", dict(profile.calls)),
        ("put", dict(profile.puts)),
    ]
    rows = [
        (role, side, " or ".join(origin.column), _how(origin), origin.optional)
        for side, origins in sides
        for role, origin in origins.items()
    ]
    rows += [(role, "", "-", f"always {value}", False) for role, value in profile.constants.items()]
    return rows + [(role, "", "-", "by the class of the contract", False) for role in profile.by_class]


def _how(origin: Origin) -> str:
    return "; ".join(word for word in (origin.told, "where there is one" if origin.optional else "") if word)
