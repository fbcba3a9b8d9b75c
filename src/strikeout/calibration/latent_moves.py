"""What becomes of a latent path, in sentences: which groups go, which come, and which of the others moves most."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from strikeout.calibration.panel_groups import counted_groups

NAMED = 3  # groups a sentence names before it counts the rest


def latent_moves(
    before: Mapping[Any, float], after: Mapping[Any, float], *, name: str, label: str, is_done: bool = False
) -> list[str]:
    """One sentence each for the groups that go, that come, and that stay; none where one of the two is no path.

    Args:
        is_done: whether it is told of afterwards.

    >>> was, now = {"2024-01-05": 0.04, "2024-01-08": 0.05}, {"2024-01-08": 0.0501}
    >>> for sentence in latent_moves(was, now, name="initial_variance", label="date"):
    ...     print(sentence)
    2024-01-05 goes as a whole, and initial_variance 0.04 with it
    1 date stays: initial_variance moves most on 2024-01-08, from 0.05 to 0.0501
    """
    if not before or not after:
        return []
    gone = {group: value for group, value in before.items() if group not in after}
    come = {group: value for group, value in after.items() if group not in before}
    stay = [group for group in after if group in before]
    told = []
    if gone:
        verb, them = ("went" if is_done else _verb("go", gone)), "it" if len(gone) == 1 else "them"
        told.append(f"{_named(gone)} {verb} as a whole, and {name} {_span(gone)} with {them}")
    if come:
        told.append(f"{_named(come)} {'came' if is_done else _verb('come', come)}, with {name} {_span(come)}")
    if stay:
        most = max(stay, key=lambda group: abs(after[group] - before[group]))
        moves = f"{'moved' if is_done else 'moves'} most {'on' if label == 'date' else 'in'} {most}"
        moves = f"{moves}, from {before[most]:.6g} to {after[most]:.6g}" if before[most] != after[most] else "as it was"
        told.append(f"{counted_groups(len(stay), label)} {_verb('stay', stay, is_done)}: {name} {moves}")
    return told


def _verb(stem: str, groups: Any, is_done: bool = False) -> str:
    if is_done:
        return f"{stem}ed"
    return stem if len(groups) > 1 else f"{stem}es" if stem == "go" else f"{stem}s"


def _named(groups: Mapping[Any, float]) -> str:
    shown, rest = ", ".join(map(str, list(groups)[:NAMED])), len(groups) - NAMED
    return f"{shown}{f' and {rest:,} more' if rest > 0 else ''}"


def _span(groups: Mapping[Any, float]) -> str:
    low, high = min(groups.values()), max(groups.values())
    return f"{low:.6g}" if low == high else f"{low:.6g} to {high:.6g}"
