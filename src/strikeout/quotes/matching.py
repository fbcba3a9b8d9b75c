"""Which layout a file has: the one profile whose columns are all there, and if none or several, what would decide."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from strikeout.errors import ColumnError
from strikeout.quotes.profile import Profile, plain, shipped_profiles

SHOWN = 3


def match(header: Iterable[str], profiles: Mapping[str, Profile] | None = None) -> Profile | None:
    """The profile whose columns this header has; None where it has those of none.

    Where one profile asks for all that another asks for and more, the first is meant.

    Raises:
        ColumnError: the header has the columns of several profiles, none of which asks for more than the others.
    """
    names = set(map(plain, header))
    fitting = [profile for profile in (profiles or shipped_profiles()).values() if not missing(profile, names)]
    meant = [one for one in fitting if not any(one.needs < other.needs for other in fitting)]
    if len(meant) > 1:
        listed = " and ".join(profile.name for profile in meant)
        raise ColumnError(
            f"The columns are those of {listed}. Say which with profile=.", profiles=[one.name for one in meant]
        )
    return meant[0] if meant else None


def missing(profile: Profile, names: set[str]) -> list[str]:
    """The columns this profile asks for that are not among these names, in the order of the profile's header."""
    absent = [ways[0] for ways in profile.needs if not names.intersection(ways)]
    order = [plain(name) for name in profile.header]
    return sorted(absent, key=lambda name: (order.index(name) if name in order else len(order), name))


def nearest(header: Iterable[str]) -> list[tuple[Profile, list[str]]]:
    """The three profiles that this header comes nearest to, each with what it misses; the nearest first."""
    names = set(map(plain, header))
    ranked = [(profile, missing(profile, names)) for profile in shipped_profiles().values()]
    shared = [(profile, absent) for profile, absent in ranked if len(absent) < len(profile.needs)]
    return sorted(shared, key=lambda pair: (len(pair[1]) / len(pair[0].needs), pair[0].name))[:SHOWN]


def told_nearest(header: Sequence[str]) -> str:
    """The nearest profiles in a sentence; empty where none is near."""
    near = nearest(header)
    if not near:
        return ""
    parts = [
        f"{profile.name} (misses {', '.join(absent[:4])}{f' and {len(absent) - 4} more' if len(absent) > 4 else ''})"
        for profile, absent in near
    ]
    return f" The nearest profiles: {'; '.join(parts)}."


def is_header(cells: Sequence[str]) -> bool:
    """Whether these cells are the header of a known layout."""
    names = set(map(plain, cells))
    return any(not missing(profile, names) for profile in shipped_profiles().values())
