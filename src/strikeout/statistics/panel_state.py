"""What the quotes of a panel leave behind: one exact state a group, and the shared parameters solved from all."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from math import isfinite, nan
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from strikeout.errors import UnknownIdError, UsageError
from strikeout.kernels import exact
from strikeout.statistics.arrow import eliminated, packed, place_of, shared_schema, solved, unpacked
from strikeout.statistics.normal_equations import NormalEquations, refuse_mixing
from strikeout.statistics.schema import Schema
from strikeout.wording import many

Floats = NDArray[np.float64]
Group = str | int | float


@dataclass(frozen=True, eq=False)
class ArrowStep:
    """One Gauss-Newton step of a panel: of the shared parameters, and of every group's latent one given those."""

    equations: NormalEquations  # of the shared parameters
    shared: Floats
    followers: Followers
    moves: Floats  # of the latent parameters of the followers
    without: int | None = None  # the follower that is gone, by number

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """Whose latent parameters these are, in order."""
        groups, gone = self.followers.groups, self.without
        return groups if gone is None else groups[:gone] + groups[gone + 1 :]

    @cached_property
    def latents(self) -> Floats:
        """By how much each latent parameter moves, in the order of the groups."""
        return self.moves if self.without is None else np.delete(self.moves, self.without)

    @cached_property
    def references(self) -> Floats:
        """Where each latent parameter moves from, in the order of the groups."""
        references = self.followers.references
        return references if self.without is None else np.delete(references, self.without)

    @cached_property
    def parameters(self) -> dict[str, float]:
        """The shared parameters after the step, by name."""
        schema = self.equations.schema
        moved = zip(schema.parameters, schema.reference, self.shared.tolist(), strict=True)
        return {name: reference + change for name, reference, change in moved}

    @cached_property
    def latent_values(self) -> dict[Group, float]:
        """The latent parameter of every group after the step."""
        return dict(zip(self.groups, (self.references + self.latents).tolist(), strict=True))


@dataclass(frozen=True, eq=False)
class Followers:
    """How the latent parameters follow the shared ones: ``(G_l - h'd) / H_ll``, group by group."""

    groups: tuple[Group, ...]
    references: Floats
    offsets: Floats  # G_l / H_ll; zero where one is held, or moves no price
    slopes: Floats  # h / H_ll, a row a shared parameter

    def moved(self, shared: Floats) -> Floats:
        """The move of each, given that of the shared parameters. Row by row, so that no group can feel another."""
        moves: Floats = self.offsets - np.add.reduce(self.slopes * shared[:, None], axis=0)
        return moves


class Worked(NamedTuple):
    """What a step needs of one group, and what no other group has a part in."""

    piece: NormalEquations  # the latent parameter eliminated
    packed: int  # the same as one integer
    reference: float  # of the latent parameter
    offset: float  # and how it follows: see Followers
    slopes: tuple[float, ...]

    @staticmethod
    def of(part: NormalEquations, latent: str, *, held: bool) -> Worked:
        """Of the state of a group."""
        piece = eliminated(part, latent, held=held)
        k, rows = place_of(part.schema, latent), part.system().rows
        pivot, others = rows[k][k], [x for i, x in enumerate(rows[k]) if i != k]
        moves = pivot > 0.0 and not held
        slopes = tuple(x / pivot if moves else 0.0 for x in others[:-1])
        return Worked(
            piece, packed(piece.words), part.schema.reference[k], others[-1] / pivot if moves else 0.0, slopes
        )


@dataclass(frozen=True, eq=False, repr=False)
class PanelState:
    """Exact normal equations by group, each at the shared reference and the group's own latent one.

    Groups can be added and taken away, and so can quotes within a group, without touching another group. A group that
    leaves nothing behind is not there. Two that are equal know the same of the quotes.

    Args:
        latent: the parameter that every group has for itself.
        parts: normal equations of all parameters, by group.
        held: groups whose latent parameter stays at its reference in a step.

    Raises:
        UsageError: the schemas differ in more than the latent reference.
    """

    latent: str
    parts: Mapping[Group, NormalEquations]
    held: frozenset[Group] = frozenset()

    def __post_init__(self) -> None:
        kept = {group: part for group, part in self.parts.items() if part.count or part.words.any()}
        ordered = {group: kept[group] for group in sorted(kept, key=rank)}
        schemas = {shared_schema(part.schema, self.latent) for part in ordered.values()}
        first = next(iter(schemas), None)
        for other in schemas:
            assert first is not None
            refuse_mixing(first, other)
        object.__setattr__(self, "parts", MappingProxyType(ordered))
        object.__setattr__(self, "held", frozenset(self.held) & ordered.keys())

    @property
    def groups(self) -> tuple[Group, ...]:
        """In order."""
        return tuple(self.parts)

    @property
    def count(self) -> int:
        """Quotes that left something behind."""
        return sum(part.count for part in self.parts.values())

    @property
    def schema(self) -> Schema:
        """Of the shared parameters.

        Raises:
            UsageError: there are no groups.
        """
        if not self.parts:
            raise UsageError("A panel state of no groups has no schema, and nothing can be solved from it.")
        return shared_schema(next(iter(self.parts.values())).schema, self.latent)

    def __add__(self, other: PanelState) -> PanelState:
        """What the quotes of both leave behind.

        Raises:
            UsageError: their latent parameters or schemas differ.
        """
        self._refuse_mixing(other)
        parts = dict(self.parts)
        for group, part in other.parts.items():
            parts[group] = parts[group] + part if group in parts else part
        return self._changed(parts, self.held | other.held)

    def __sub__(self, other: PanelState) -> PanelState:
        """What the quotes leave behind once the other's are taken away; a group left with nothing goes.

        Raises:
            UsageError: their latent parameters or schemas differ, or a group of the other is not there.
        """
        self._refuse_mixing(other)
        parts = dict(self.parts)
        for group, part in other.parts.items():
            if group not in parts:
                raise UsageError(f"Group {group!r} cannot be taken away: it is not in the panel.")
            parts[group] = parts[group] - part
        return self._changed(parts, self.held)

    def without(self, groups: Iterable[Group]) -> PanelState:
        """All but these groups, whose states are those of here, not copies.

        Raises:
            UnknownIdError: a group that is not there.
        """
        gone = self._known(groups)
        return self._changed({group: part for group, part in self.parts.items() if group not in gone}, self.held)

    def only(self, groups: Iterable[Group]) -> PanelState:
        """These groups alone.

        Raises:
            UnknownIdError: a group that is not there.
        """
        kept = self._known(groups)
        return self._changed({group: part for group, part in self.parts.items() if group in kept}, self.held)

    def _changed(self, parts: Mapping[Group, NormalEquations], held: frozenset[Group]) -> PanelState:
        """The state of these parts. What was worked out of a group is taken over where its part is the same."""
        made = PanelState(self.latent, parts, held)
        if "_worked" in self.__dict__:
            made.__dict__["_taken_over"] = {
                group: self._worked[group]
                for group, part in made.parts.items()
                if self.parts.get(group) is part and (group in made.held) == (group in self.held)
            }
        return made

    def digest(self) -> str:
        """64 hexadecimal digits: the identity of what is known, the same whatever the history."""
        return self._digest

    @cached_property
    def _digest(self) -> str:
        body = sha256(f"strikeout panel 1\n{self.latent}\n{len(self.parts)}\n".encode())
        for group, part in self.parts.items():
            name = str(group)
            body.update(f"{len(name)} {name} {group in self.held} {part.digest()}\n".encode("utf-8", "surrogatepass"))
        return body.hexdigest()

    @cached_property
    def pieces(self) -> Mapping[Group, NormalEquations]:
        """What each group says of the shared parameters, its latent one eliminated."""
        return MappingProxyType({group: worked.piece for group, worked in self._worked.items()})

    @cached_property
    def whole(self) -> NormalEquations:
        """The exact sum of the pieces.

        Raises:
            UsageError: there are no groups.
        """
        schema = self.schema
        words = unpacked(self._packed[0], len(exact.zero(schema.columns)))
        return NormalEquations(schema, words, self.count)

    def step(self) -> ArrowStep:
        """One Gauss-Newton step of all parameters; not-a-number where the groups do not determine them.

        Raises:
            UsageError: there are no groups.
        """
        return self.followed(self.whole, self.whole.step())

    def step_without(self, group: Group) -> ArrowStep:
        """``without([group]).step()``, bit for bit, in microseconds.

        One subtraction, one small solve, and the others follow. The ``count`` of its ``equations`` is not kept.

        Raises:
            UnknownIdError: the group is not there.
        """
        schema, size, total, pieces, followers = self._ready
        found = pieces.get(group)
        if found is None:
            self._known([group])
            raise AssertionError("unreachable")
        number, piece = found
        left = solved(unpacked(total - piece, size), schema)
        shared = left.step()
        return ArrowStep(left, shared, followers, followers.moved(shared), number)

    def followed(self, equations: NormalEquations, shared: Floats) -> ArrowStep:
        """The step in which the shared parameters move by ``shared`` and every latent one follows."""
        return ArrowStep(equations, shared, self._followers, self._followers.moved(shared))

    @cached_property
    def _packed(self) -> tuple[int, dict[Group, int]]:
        pieces = {group: worked.packed for group, worked in self._worked.items()}
        return sum(pieces.values()), pieces

    @cached_property
    def _worked(self) -> dict[Group, Worked]:
        known: dict[Group, Worked] = self.__dict__.pop("_taken_over", {})
        return {
            group: known[group] if group in known else Worked.of(part, self.latent, held=group in self.held)
            for group, part in self.parts.items()
        }

    @cached_property
    def _ready(self) -> tuple[Schema, int, int, dict[Group, tuple[int, int]], Followers]:
        """What ``step_without`` needs: schema, number of sums, their total, each group's place and piece, followers."""
        total, pieces = self._packed
        placed = {group: (n, piece) for n, (group, piece) in enumerate(pieces.items())}
        return self.schema, len(exact.zero(self.schema.columns)), total, placed, self._followers

    @cached_property
    def _followers(self) -> Followers:
        worked = self._worked.values()
        table = np.ascontiguousarray(np.array([one.slopes for one in worked]).T)
        offsets, references = np.array([one.offset for one in worked]), np.array([one.reference for one in worked])
        return Followers(self.groups, references, offsets, table)

    def _known(self, groups: Iterable[Group]) -> Collection[Group]:
        asked = set(groups)
        missing = [group for group in asked if group not in self.parts]
        if missing:
            have = ", ".join(map(repr, self.groups[:3])) + (", ..." if len(self.parts) > 3 else "")
            raise UnknownIdError(
                f"{len(missing)} of {len(asked)} groups are not in the panel: {missing[0]!r}. "
                f"It has {len(self.parts)}: {have}.",
                groups=missing,
            )
        return asked

    def _refuse_mixing(self, other: PanelState) -> None:
        if self.latent != other.latent:
            raise UsageError(f"Panels of {self.latent} and of {other.latent} by group cannot be combined.")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PanelState):
            return NotImplemented
        same = self.latent == other.latent and self.held == other.held and self.groups == other.groups
        return same and all(part == other.parts[group] for group, part in self.parts.items())

    def __hash__(self) -> int:
        return hash(self.digest())

    def __repr__(self) -> str:
        return f"<PanelState of {many(self.count, 'quote')} in {many(len(self.parts), 'group')}, {self.digest()[:12]}>"


def rank(group: Group) -> tuple[bool, float, str]:
    """The order of groups: numbers by size, then text. A number and its text rank, and are named, alike.

    A label of numbers comes back from a CSV as text, and the panel is to be the same one.

    >>> sorted(["2024-01-02", "10", "9"], key=rank), sorted([10, 9], key=rank)
    (['9', '10', '2024-01-02'], [9, 10])
    """
    text = str(group)
    try:
        number = float(text)
    except ValueError:
        number = nan
    return not isfinite(number), number if isfinite(number) else 0.0, text
