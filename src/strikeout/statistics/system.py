"""The exact normal equations of a calibration: one block per group, a latent parameter eliminated from each.

A plain book has no latent parameter: its system is one block, nothing is eliminated, and its digest is that of the
block. A panel has one block per group, each at the shared reference and the group's own latent reference.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from math import isfinite, nan
from types import MappingProxyType
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from strikeout.errors import UnknownIdError, UsageError
from strikeout.kernels import exact
from strikeout.kernels.arrays import Floats, Integers, Mask, Rows
from strikeout.kernels.symmetric import solve
from strikeout.quotes.names import NameIndex
from strikeout.statistics.footprints import Footprints
from strikeout.statistics.linearization import places
from strikeout.statistics.normal_equations import PAPER_RIDGE, NormalEquations, Ridge, Schema, refuse_mixing
from strikeout.statistics.schur import eliminate, pack, place_of, shared_schema, solve_words, unpack
from strikeout.text import many

Group = str | int | float

T = TypeVar("T")

WHOLE: Group = ""  # the group of the only block of a plain system


@dataclass(frozen=True, eq=False)
class Followers:
    """How latent parameters follow the shared ones: ``(G_l - h'd) / H_ll``, one entry per group."""

    groups: tuple[Group, ...]
    references: Floats
    offsets: Floats  # G_l / H_ll; zero if the parameter is held, or moves no price
    slopes: Floats  # h / H_ll, one row per shared parameter

    def moved(self, shared: Floats) -> Floats:
        """Return the move of each, given that of the shared parameters; no group affects another, to the bit."""
        moves: Floats = self.offsets - np.add.reduce(self.slopes * shared[:, None], axis=0)
        return moves


NO_FOLLOWERS = Followers((), np.empty(0), np.empty(0), np.empty((0, 0)))


@dataclass(frozen=True, eq=False, init=False)
class OneStep:
    """One Gauss-Newton step at the reference of a system: of the shared parameters, and of the latent ones given those.

    Equal systems give equal bits. A step is not-a-number if the system does not determine it.

    Args:
        equations: of the shared parameters, the latent ones eliminated.
        ridge: added to the curvature of the shared parameters; see ``NormalEquations.step``.
        free: numbers of the shared parameters that may move; None if all may.
    """

    equations: NormalEquations
    ridge: Ridge
    free: tuple[int, ...] | None
    followers: Followers
    source: System | None  # None for a plain system
    dropped: int | None  # number of a group of ``source`` that is struck out

    def __init__(
        self,
        equations: NormalEquations,
        ridge: Ridge = None,
        free: tuple[int, ...] | None = None,
        *,
        followers: Followers = NO_FOLLOWERS,
        source: System | None = None,
        dropped: int | None = None,
    ) -> None:
        # The __init__ that dataclass writes for a frozen class takes twice as long, and a step takes microseconds.
        fields = self.__dict__
        fields["equations"], fields["ridge"], fields["free"] = equations, ridge, free
        fields["followers"], fields["source"], fields["dropped"] = followers, source, dropped

    @property
    def system(self) -> System:
        """The system this step is solved from."""
        if self.source is None:
            return System.of(self.equations)
        return self.source if self.dropped is None else self.source.without([self.followers.groups[self.dropped]])

    @cached_property
    def change(self) -> Floats:
        """By how much each shared parameter moves from the reference."""
        if self.free is None:
            return self.equations.step(ridge=self.ridge)
        change = np.zeros(len(self.equations.schema.parameters))
        change[list(self.free)] = _solve_part(self.equations, self.free, self.ridge)
        return change

    @cached_property
    def parameters(self) -> dict[str, float]:
        """The shared parameters after the step, by name."""
        equations = self.equations
        schema = equations.schema
        change = equations.step() if self.free is None and self.ridge is None else self.change
        moved = zip(schema.parameters, schema.reference, change.tolist(), strict=True)
        return {name: reference + change for name, reference, change in moved}

    @property
    def groups(self) -> tuple[Group, ...]:
        """The groups that have a latent parameter, in order."""
        groups, gone = self.followers.groups, self.dropped
        return groups if gone is None else groups[:gone] + groups[gone + 1 :]

    @cached_property
    def latent_changes(self) -> Floats:
        """By how much each latent parameter moves, in the order of the groups."""
        if not self.followers.groups:
            return NO_FOLLOWERS.offsets
        return self._left(self.followers.moved(self.change))

    @property
    def latent_references(self) -> Floats:
        """From where each latent parameter moves, in the order of the groups."""
        return self._left(self.followers.references)

    @cached_property
    def latent(self) -> dict[Group, float]:
        """The latent parameter of every group after the step."""
        return dict(zip(self.groups, (self.latent_references + self.latent_changes).tolist(), strict=True))

    def _left(self, values: Floats) -> Floats:
        return values if self.dropped is None else np.delete(values, self.dropped)


class Reduced(NamedTuple):
    """One block with its latent parameter eliminated; no other block affects it."""

    piece: NormalEquations
    packed: int  # the same as one integer
    reference: float  # of the latent parameter
    offset: float  # and how it follows: see Followers
    slopes: tuple[float, ...]

    @staticmethod
    def of(block: NormalEquations, latent: str, *, held: bool) -> Reduced:
        """Eliminate the latent parameter of a block."""
        piece = eliminate(block, latent, held=held)
        k, rows = place_of(block.schema, latent), block.system().rows
        pivot, others = rows[k][k], [x for i, x in enumerate(rows[k]) if i != k]
        moves = pivot > 0.0 and not held
        slopes = tuple(x / pivot if moves else 0.0 for x in others[:-1])
        return Reduced(
            piece, pack(piece.words), block.schema.reference[k], others[-1] / pivot if moves else 0.0, slopes
        )


class Stacked(NamedTuple):
    """What steps and their judges read of every group of a panel, one row per group, in order."""

    curvature: Floats  # groups x q x q
    follow: Floats  # groups x (2 + shared parameters): reference and offset of the latent parameter, then its slopes

    @staticmethod
    def of(blocks: Iterable[NormalEquations], eliminated: Iterable[Reduced]) -> Stacked:
        """Stack these groups."""
        known = list(blocks)
        size = known[0].schema.columns
        triangles = np.array([block.solved[: len(block.words)] for block in known])
        follow = np.array([(one.reference, one.offset, *one.slopes) for one in eliminated])
        return Stacked(triangles[:, np.array(places(size))[:-1, :-1]], follow)

    def picked(self, more: Stacked | None, rows: Rows) -> Stacked:
        """Return these rows of it and of more below it."""
        return Stacked(*(picked(*pair, rows) for pair in zip(self, more or (None, None), strict=True)))


@dataclass(frozen=True, eq=False, repr=False)
class System:
    """Exact normal equations by group.

    Groups, and quotes within a group, can be added and taken away without touching another group. A group of a panel
    without quotes is not in the system. Two systems are equal if the same quotes, at the same reference, are in them.

    Args:
        blocks: normal equations of all parameters, by group. A plain system has one block, of the group ``WHOLE``.
        latent: the parameter that every group has for itself; None for a plain system.
        held: groups whose latent parameter stays at its reference in a step.

    Raises:
        UsageError: the schemas differ in more than the latent reference, or a plain system has not exactly one block.
    """

    blocks: Mapping[Group, NormalEquations]
    latent: str | None = None
    held: frozenset[Group] = frozenset()

    def __post_init__(self) -> None:
        if self.latent is None:
            if tuple(self.blocks) != (WHOLE,):
                raise UsageError(f"System: without a latent parameter it has one block; got {len(self.blocks)}.")
            return
        latent = self.latent
        kept = {group: block for group, block in self.blocks.items() if block.count or block.words.any()}
        ordered = {group: kept[group] for group in sorted(kept, key=rank)}
        schemas = {shared_schema(block.schema, latent) for block in ordered.values()}
        first = next(iter(schemas), None)
        for other in schemas:
            assert first is not None
            refuse_mixing(first, other)
        object.__setattr__(self, "blocks", MappingProxyType(ordered))
        object.__setattr__(self, "held", frozenset(self.held) & ordered.keys())

    @staticmethod
    def of(equations: NormalEquations) -> System:
        """Return the plain system of these normal equations."""
        return System({WHOLE: equations})

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """The groups that have a latent parameter, in order; none for a plain system."""
        return () if self.latent is None else tuple(self.blocks)

    @cached_property
    def count(self) -> int:
        """The number of quotes in it."""
        return sum(block.count for block in self.blocks.values())

    @property
    def schema(self) -> Schema:
        """The schema of the shared parameters.

        Raises:
            UsageError: there are no groups.
        """
        if not self.blocks:
            raise UsageError("A system of no groups has no schema, and nothing can be solved from it.")
        schema = next(iter(self.blocks.values())).schema
        return schema if self.latent is None else shared_schema(schema, self.latent)

    def __add__(self, other: System) -> System:
        """Return the system of the quotes of both.

        Raises:
            UsageError: their latent parameters or schemas differ.
        """
        self._refuse_mixing(other)
        blocks = dict(self.blocks)
        for group, block in other.blocks.items():
            blocks[group] = blocks[group] + block if group in blocks else block
        return self._changed(blocks, self.held | other.held)

    def __sub__(self, other: System) -> System:
        """Return the system without the quotes of the other; a group of a panel left without quotes is removed.

        Raises:
            UsageError: their latent parameters or schemas differ, or a group of the other is not in this one.
        """
        self._refuse_mixing(other)
        blocks = dict(self.blocks)
        for group, block in other.blocks.items():
            if group not in blocks:
                raise UsageError(f"Group {group!r} cannot be taken away: it is not in the panel.")
            blocks[group] = blocks[group] - block
        return self._changed(blocks, self.held)

    def without(self, groups: Iterable[Group]) -> System:
        """Return the system of all other groups; their blocks are the same objects.

        Raises:
            UnknownIdError: a group that is not in the system.
        """
        gone = self._known(groups)
        return self._changed({group: block for group, block in self.blocks.items() if group not in gone}, self.held)

    def only(self, groups: Iterable[Group]) -> System:
        """Return the system of these groups.

        Raises:
            UnknownIdError: a group that is not in the system.
        """
        kept = self._known(groups)
        return self._changed({group: block for group, block in self.blocks.items() if group in kept}, self.held)

    def exchanged(self, out: Iterable[Group], blocks: Mapping[Group, NormalEquations]) -> System:
        """Return the system without some groups and with these blocks, at a cost that depends on the change alone.

        Blocks that are there already are replaced. The result is that of a new ``System``, bit for bit.

        Raises:
            UnknownIdError: a group that is not in the system.
            UsageError: the schema of a block is another one.
        """
        gone = self._known(out)
        if self.latent is None:
            return System(dict(blocks) or self.blocks)
        new = {group: block for group, block in blocks.items() if block.count or block.words.any()}
        lost = {*gone, *(group for group in blocks if group not in new)}
        for block in new.values():
            refuse_mixing(self.schema, shared_schema(block.schema, self.latent))
        found = {g: Reduced.of(block, self.latent, held=g in self.held) for g, block in new.items()}
        old = [self._eliminated[group] for group in {*lost, *new} if group in self.blocks]
        groups, rows = exchanged_rows(self.groups, lost, new)
        made = object.__new__(System)
        made.__dict__.update(
            blocks=MappingProxyType(_exchanged(self.blocks, new, groups)),
            latent=self.latent,
            held=self.held and self.held.intersection(groups),
            groups=groups,
            count=self.count + sum(one.piece.count for one in found.values()) - sum(one.piece.count for one in old),
            _eliminated=_exchanged(self._eliminated, found, groups),
            _total=self._total + sum(one.packed for one in found.values()) - sum(one.packed for one in old),
        )
        if groups:
            more = Stacked.of(new.values(), found.values()) if new else None
            made.__dict__["_stacked"] = self._stacked.picked(more, rows)
        return made

    def _changed(self, blocks: Mapping[Group, NormalEquations], held: frozenset[Group]) -> System:
        """Return the system of these blocks. A block that is the same object is not eliminated again."""
        made = System(blocks, self.latent, held)
        if "_eliminated" in self.__dict__:
            made.__dict__["_known_already"] = {
                group: self._eliminated[group]
                for group, block in made.blocks.items()
                if self.blocks.get(group) is block and (group in made.held) == (group in self.held)
            }
        return made

    def digest(self) -> str:
        """Return 64 hexadecimal digits that name the system, whatever was added and taken away on the way."""
        return self._digest

    @cached_property
    def _digest(self) -> str:
        if self.latent is None:
            return self.blocks[WHOLE].digest()
        body = sha256(f"strikeout panel 1\n{self.latent}\n{len(self.blocks)}\n".encode())
        for group, block in self.blocks.items():
            name = str(group)
            body.update(f"{len(name)} {name} {group in self.held} {block.digest()}\n".encode("utf-8", "surrogatepass"))
        return body.hexdigest()

    @cached_property
    def pieces(self) -> Mapping[Group, NormalEquations]:
        """The normal equations of the shared parameters by group, the latent parameter eliminated."""
        if self.latent is None:
            return self.blocks
        return MappingProxyType({group: one.piece for group, one in self._eliminated.items()})

    def reduced(self) -> NormalEquations:
        """Return the normal equations of the shared parameters: the exact sum over groups.

        Raises:
            UsageError: there are no groups.
        """
        return self.blocks[WHOLE] if self.latent is None else self._reduced

    @cached_property
    def _reduced(self) -> NormalEquations:
        schema = self.schema
        return NormalEquations(schema, unpack(self._total, len(exact.zero(schema.columns))), self.count)

    def step(self, *, ridge: Ridge = None, free: tuple[int, ...] | None = None) -> OneStep:
        """Return one Gauss-Newton step of all parameters.

        Args:
            ridge, free: see ``OneStep``.

        Raises:
            UsageError: there are no groups.
        """
        if self.latent is None:
            return OneStep(self.blocks[WHOLE], ridge, free)
        return OneStep(self._reduced, ridge, free, followers=self._followers, source=self)

    def step_without(self, group: Group) -> OneStep:
        """Return ``without([group]).step()``, bit for bit, in microseconds.

        One subtraction, one small solve, and the other groups follow. The ``count`` of its ``equations`` is zero.

        Raises:
            UnknownIdError: the group is not in the system.
        """
        schema, size, total, pieces, followers = self._ready
        found = pieces.get(group)
        if found is None:
            self._known([group])
            raise AssertionError("unreachable")
        number, piece = found
        left = solve_words(unpack(total - piece, size), schema)
        return OneStep(left, followers=followers, source=self, dropped=number)

    @cached_property
    def _total(self) -> int:
        """The normal equations of all groups, packed and added."""
        return sum(one.packed for one in self._eliminated.values())

    @cached_property
    def _eliminated(self) -> dict[Group, Reduced]:
        known: dict[Group, Reduced] = self.__dict__.pop("_known_already", {})
        latent = self.latent
        assert latent is not None, "a plain system has nothing to eliminate"
        return {
            group: known[group] if group in known else Reduced.of(block, latent, held=group in self.held)
            for group, block in self.blocks.items()
        }

    @cached_property
    def _ready(self) -> tuple[Schema, int, int, dict[Group, tuple[int, int]], Followers]:
        """The inputs of ``step_without``: schema, number and total of the sums, those of each group, followers."""
        placed = {group: (n, one.packed) for n, (group, one) in enumerate(self._eliminated.items())}
        return self.schema, len(exact.zero(self.schema.columns)), self._total, placed, self._followers

    @cached_property
    def _followers(self) -> Followers:
        columns = np.ascontiguousarray(self._stacked.follow.T)
        return Followers(self.groups, columns[0], columns[1], columns[2:])

    @cached_property
    def _stacked(self) -> Stacked:
        return Stacked.of(self.blocks.values(), self._eliminated.values())

    @property
    def curvatures(self) -> Floats:
        """The curvature of all parameters of every group, one matrix per group."""
        return self._stacked.curvature

    @cached_property
    def are_held(self) -> Mask:
        """Whether the latent parameter of each group stays at its reference, in the order of the groups."""
        if not self.held:
            return np.zeros(len(self.groups), bool)
        return np.array([group in self.held for group in self.groups])

    def _known(self, groups: Iterable[Group]) -> Collection[Group]:
        asked = set(groups)
        missing = [group for group in asked if self.latent is None or group not in self.blocks]
        if missing:
            have = ", ".join(map(repr, self.groups[:3])) + (", ..." if len(self.groups) > 3 else "")
            raise UnknownIdError(
                f"{len(missing)} of {len(asked)} groups are not in the panel: {missing[0]!r}. "
                f"It has {len(self.groups)}: {have}.",
                groups=missing,
            )
        return asked

    def _refuse_mixing(self, other: System) -> None:
        if self.latent != other.latent:
            mine, yours = (one.latent or "no parameter" for one in (self, other))
            raise UsageError(f"Systems of {mine} and of {yours} by group cannot be combined.")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, System):
            return NotImplemented
        same = self.latent == other.latent and self.held == other.held and tuple(self.blocks) == tuple(other.blocks)
        return same and all(block == other.blocks[group] for group, block in self.blocks.items())

    def __hash__(self) -> int:
        return hash(self.digest())

    def __repr__(self) -> str:
        groups = "" if self.latent is None else f" in {many(len(self.blocks), 'group')}"
        return f"<System of {many(self.count, 'quote')}{groups}, {self.digest()[:12]}>"


@dataclass(frozen=True, eq=False)
class FootprintBlocks:
    """The footprints of a calibration's quotes by group, and the system they sum to.

    Args:
        blocks, latent, held: as for ``System``, with the footprints of each block in place of their sum.
    """

    blocks: Mapping[Group, Footprints]
    latent: str | None = None
    held: frozenset[Group] = frozenset()

    @staticmethod
    def of(footprints: Footprints) -> FootprintBlocks:
        """Return the footprints of a plain system."""
        return FootprintBlocks({WHOLE: footprints})

    @property
    def whole(self) -> Footprints:
        """The footprints of a plain system."""
        if self.latent is not None:
            raise UsageError("A panel has footprints by group: use ``blocks``.")
        return self.blocks[WHOLE]

    @cached_property
    def system(self) -> System:
        """The sum of all footprints."""
        return System({group: rows.total() for group, rows in self.blocks.items()}, self.latent, self.held)

    def less(self, ids: ArrayLike) -> System:
        """Return the system without these quotes; blocks that lose none are the same objects."""
        if self.latent is None:
            rows = self.blocks[WHOLE]
            return System.of(rows.total().less(rows, rows.places(ids)))
        self.system.pieces  # noqa: B018  (eliminated here once; what is left does not eliminate the others again)
        gone = {group: self.blocks[group].total(at) for group, at in self.places(ids).items()}
        return self.system - System(gone, self.latent)

    def places(self, ids: ArrayLike) -> dict[Group, Integers]:
        """Return the row numbers of these ids in the blocks that have them."""
        if self.latent is None:
            return {WHOLE: self.blocks[WHOLE].places(ids)}
        index, ends = self._index
        rows = index.find(ids)
        owner = np.searchsorted(ends, rows, side="right")
        names, starts = list(self.blocks), np.concatenate([[0], ends])
        return {names[n]: (rows[owner == n] - starts[n]).astype(np.int64) for n in np.unique(owner).tolist()}

    @cached_property
    def _index(self) -> tuple[NameIndex, Rows]:
        blocks = self.blocks.values()
        ids = np.concatenate([rows.ids for rows in blocks]) if blocks else np.empty(0, "U1")
        return NameIndex.of(ids), np.cumsum([len(rows) for rows in blocks], dtype=np.intp)


def exchanged_rows(
    old: tuple[Group, ...], lost: Collection[Group], new: Collection[Group]
) -> tuple[tuple[Group, ...], Rows]:
    """Return the groups of now, in order, and where each is found in the old ones with the new ones below them."""
    rows: dict[Group, int] = dict(zip(old, range(len(old)), strict=True))
    for group in lost:
        rows.pop(group, None)
    last, fresh = next(reversed(rows), None), [group for group in new if group not in rows]
    rows.update(zip(new, range(len(old), len(old) + len(new)), strict=True))
    is_next = len(fresh) == 1 and (last is None or rank(last) < rank(fresh[0]))
    if fresh and not is_next:  # the next date is the usual case, and needs no sorting
        rows = {group: rows[group] for group in sorted(rows, key=rank)}
    return tuple(rows), np.array(list(rows.values()), np.intp)


def picked(old: Floats, more: Floats | None, rows: Rows) -> Floats:
    """Return these rows of an array with more below it; the old ones are copied once."""
    found: Floats = old.take(rows, axis=0, mode="clip")
    if more is not None:
        is_new = rows >= len(old)
        found[is_new] = more[rows[is_new] - len(old)]
    return found


def _exchanged(old: Mapping[Group, T], new: Mapping[Group, T], groups: tuple[Group, ...]) -> dict[Group, T]:
    """Return the values of these groups in their order: new ones, and those of before for the others."""
    found = {**old, **new}
    for group in found.keys() - groups if len(found) > len(groups) else ():
        del found[group]
    return found if tuple(found) == groups else {group: found[group] for group in groups}


def _solve_part(equations: NormalEquations, free: tuple[int, ...], ridge: Ridge) -> list[float]:
    rows = equations.system().rows
    added = PAPER_RIDGE if ridge == "paper" else 0.0
    grown = 1.0 if ridge is None or isinstance(ridge, str) else 1.0 + ridge
    H = [[rows[i][j] * grown + added if i == j else rows[i][j] for j in free] for i in free]
    return solve(H, [rows[-1][i] for i in free])


def rank(group: Group) -> tuple[bool, float, str]:
    """Return the sort key of a group: numbers by size, then text. A number and its text rank, and are named, alike.

    A label of numbers comes back from a CSV as text, and the panel has to be the same one.

    >>> sorted(["2024-01-02", "10", "9"], key=rank), sorted([10, 9], key=rank)
    (['9', '10', '2024-01-02'], [9, 10])
    """
    text = str(group)
    try:
        number = float(text)
    except ValueError:
        number = nan
    return not isfinite(number), number if isfinite(number) else 0.0, text
