"""Gather exact states from the partitions of a lake, on any engine: complete, each quote once, of one arithmetic."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from hashlib import sha256
from math import ceil
from os import PathLike
from random import Random
from typing import Any, TypeGuard

from strikeout.assurance.build import build_of, difference
from strikeout.errors import NothingMeantError, RefusedError, StrikeoutError, UsageError
from strikeout.models.heston import Heston
from strikeout.models.model import Model, Theta
from strikeout.scale.engines import Engine, Here, engine_named
from strikeout.scale.lake import Lake
from strikeout.scale.partition import (
    PARTITION,
    Answer,
    Plan,
    Point,
    Receipt,
    Removal,
    State,
    answer_batch,
    canary,
    seal_of,
    unseal,
)
from strikeout.scale.spill import Spill, SpilledPart, total
from strikeout.statistics.moments import Basis
from strikeout.tables import Cell, Table, number
from strikeout.text import many

Progress = Callable[[str, int, int], None]

BATCHES_PER_WORKER = 4  # so that one slow batch does not keep the others waiting
LARGEST_BATCH = 4  # partitions whose states a worker, and the driver, has in memory together


@dataclass(frozen=True)
class Recount:
    """Partitions computed again from their files: how many, and which had other states than the gathered ones."""

    checked: int
    wrong: tuple[str, ...]

    @property
    def is_equal(self) -> bool:
        """Whether every state was found again, bit for bit."""
        return not self.wrong


@dataclass(frozen=True, repr=False)
class Gathered:
    """The states of a lake by partition and tag, on disk; ``calibrate`` takes their sum, which is in memory.

    Attributes:
        plan: the lake and how its states are computed.
        parts: a state for each partition and combination of tag values, in order.
        receipts: what was read of each partition.
        reused: how many partitions came from the cache.
    """

    plan: Plan
    parts: tuple[SpilledPart, ...]
    receipts: tuple[Receipt, ...]
    reused: int = 0
    engine: Engine = field(default_factory=Here)

    @property
    def tags(self) -> tuple[str, ...]:
        """The labels by which states are kept apart."""
        return self.plan.tags

    @property
    def count(self) -> int:
        """The quotes in all states."""
        return sum(part.count for part in self.parts)

    @cached_property
    def _sum(self) -> State:
        return total(self.plan, self.parts)

    def total(self, *, pool: bool = False) -> State:
        """Return the sum of all states: moments, or a ``System`` of normal equations.

        Args:
            pool: allow quotes of several underlyings.

        Raises:
            UsageError: the quotes are of several underlyings, and ``pool`` is False.
        """
        names = self.underlyings
        if len(names) > 1 and not pool:
            raise UsageError(
                f"The states are of {len(names):,} underlyings ({_some(names)}), "
                "which one set of parameters does not describe. Choose one (gather with tags=('underlying',), then "
                "only(underlying=...)), calibrate each (calibrate_many), or add them up (pool=True).",
                underlyings=len(names),
            )
        return self._sum

    @property
    def underlyings(self) -> tuple[str, ...]:
        """The underlyings of the quotes, as far as tags and books name them."""
        if "underlying" in self.tags:
            place = self.tags.index("underlying")
            return tuple(sorted({part.tags[place] for part in self.parts}))
        if "underlying" not in self.plan.lake.each:
            return ()
        place, held = self.plan.lake.each.index("underlying"), {part.partition for part in self.parts}
        books = (book for receipt in self.receipts if receipt.partition in held for book in receipt.books)
        return tuple(sorted({book[place] for book in books}))

    def only(self, **tags: str | Sequence[str]) -> Gathered:
        """Return the states with these tag values: ``only(date="2024-03-01")``; "partition" is a tag too.

        Forwards stay as they are: those of the quotes among all quotes of their slice.

        Raises:
            UsageError: a name that is not among the tags.
            NothingMeantError: no state has one of the values.
        """
        asked = self._asked(tags)
        return replace(self, parts=tuple(part for part in self.parts if self._has(part, asked)))

    def without(self, **tags: str | Sequence[str]) -> Gathered:
        """Return the states without the quotes with these tag values, as if they had never been seen.

        No file is read, except partitions in which the forwards of other quotes depend on the removed ones.

        Raises:
            UsageError: a name that is not among the tags.
            NothingMeantError: no state has one of the values.
            RefusedError: what is left of a slice gives no forward, or a file changed since it was gathered.
        """
        asked = self._asked(tags)
        touched = {part.partition for part in self.parts if self._has(part, asked)}
        joint = {
            receipt.partition
            for receipt in self.receipts
            if receipt.is_joint and receipt.partition in touched and PARTITION not in asked
        }
        kept = [part for part in self.parts if not self._has(part, asked) and part.partition not in joint]
        own = {name: values for name, values in asked.items() if name != PARTITION}
        left = replace(self, parts=tuple(kept))
        return left._with_restated(sorted(joint), Removal(tags=own)) if joint else left

    def without_quotes(self, where: str, *, partitions: Iterable[str] | None = None) -> Gathered:
        """Return the states without the quotes that match a condition, as if they had never been seen.

        Args:
            where: a condition in SQL, as in ``strikeout forget --where``.
            partitions: the only ones to read, if it is known where the quotes are; all by default.

        Raises:
            UsageError: the condition is malformed, or a partition is not in the lake.
            RefusedError: what is left of a slice gives no forward, or a file changed since it was gathered.
        """
        known = [receipt.partition for receipt in self.receipts]
        names = known if partitions is None else list(partitions)
        unknown = sorted(set(names) - set(known))
        if unknown:
            raise UsageError(f"{unknown[0]!r} is not a partition of the lake.", partition=unknown[0])
        left = replace(self, parts=tuple(part for part in self.parts if part.partition not in set(names)))
        return left._with_restated(sorted(names), Removal(where=where))

    def _with_restated(self, names: Sequence[str], removal: Removal) -> Gathered:
        """Return these states and those of some partitions, which are read again without the removed quotes."""
        again = _collected(replace(self.plan, removal=removal), names, self.engine, None)
        before = {receipt.partition: receipt.content for receipt in self.receipts}
        for receipt in again.receipts:
            if before[receipt.partition] != receipt.content:
                raise RefusedError(
                    f"{receipt.partition} changed since it was gathered. Gather the lake again.",
                    partition=receipt.partition,
                )
        return replace(self, parts=tuple(sorted((*self.parts, *again.parts), key=_place)))

    def _asked(self, tags: Mapping[str, str | Sequence[str]]) -> dict[str, tuple[str, ...]]:
        if not tags:
            raise UsageError("Name a tag and its value, such as licence='L3'.")
        asked = {
            name: (values,) if isinstance(values, str) else tuple(map(str, values)) for name, values in tags.items()
        }
        for name, values in asked.items():
            if name != PARTITION and name not in self.tags:
                known = ", ".join((*self.tags, PARTITION))
                raise UsageError(
                    f"{name!r} is not a tag of these states; they have {known}. Gather with tags={(name,)!r}."
                )
            found = {self._value(part, name) for part in self.parts}
            for value in values:
                if value not in found:
                    raise NothingMeantError(
                        f"No state has {name} = {value!r}; there are {_some(sorted(found))}.", label=name
                    )
        return asked

    def _value(self, part: SpilledPart, name: str) -> str:
        return part.partition if name == PARTITION else part.tags[self.tags.index(name)]

    def _has(self, part: SpilledPart, asked: Mapping[str, tuple[str, ...]]) -> bool:
        return all(self._value(part, name) in values for name, values in asked.items())

    def verify(self, share: float = 0.05, *, seed: int = 0) -> Recount:
        """Compute a random share of the partitions again from their files, at least one, and compare every bit.

        States from which quotes were removed are not comparable with the files: verify before.

        Raises:
            UsageError: a share outside 0 to 1.
        """
        if not 0.0 < share <= 1.0:
            raise UsageError(f"share is {share}; it is a share of the partitions, above 0 and at most 1.")
        names = sorted(receipt.partition for receipt in self.receipts)
        chosen = sorted(Random(seed).sample(names, max(1, ceil(share * len(names)))))
        again = _collected(replace(self.plan, folder=None), chosen, self.engine, None)
        now, before = _digests(again.parts), _digests(part for part in self.parts if part.partition in set(chosen))
        wrong = {key[0] for key in now.keys() | before.keys() if now.get(key) != before.get(key)}
        return Recount(len(chosen), tuple(sorted(wrong)))

    def digest(self) -> str:
        """Return a digest of the sum and of what was read: 64 hexadecimal digits."""
        lines = sorted(f"{receipt.content} {receipt.count}" for receipt in self.receipts)
        return sha256("\n".join([self._sum.digest(), *lines]).encode()).hexdigest()

    def to_table(self) -> Table:
        """Return quotes and states by tag values."""
        counts: dict[tuple[str, ...], list[int]] = {}
        for part in self.parts:
            entry = counts.setdefault(part.tags, [0, 0])
            entry[0] += part.count
            entry[1] += 1
        rows: list[list[Cell]] = [[*tags, number(n, ",d"), number(k, ",d")] for tags, (n, k) in sorted(counts.items())]
        size = len(self.tags)
        return Table((*self.tags, "quotes", "partitions"), rows, numbers=(size, size + 1), whole=range(size))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "partitions": len(self.receipts),
            "reused": self.reused,
            "rows": sum(receipt.rows for receipt in self.receipts),
            "quotes": self.count,
            "rejected": sum(receipt.rejected for receipt in self.receipts),
            "left_out": sum(receipt.left_out for receipt in self.receipts),
            "tags": list(self.tags),
            "states": len(self.parts),
            "digest": self._sum.digest(),
        }

    def summary(self) -> str:
        """Return the counts as plain text."""
        facts, partitions = self.to_dict(), many(len(self.receipts), "partition")
        lines = [
            f"{many(facts['quotes'], 'quote')} of {many(facts['rows'], 'row')} in {partitions}",
            f"rejected {facts['rejected']:,}, left out {facts['left_out']:,}; {self.reused:,} from the cache",
            f"state {facts['digest']}",
        ]
        return "\n".join(lines)

    def __repr__(self) -> str:
        partitions = many(len(self.receipts), "partition")
        return f"<Gathered {many(self.count, 'quote')} of {partitions}, {self._sum.digest()[:12]}>"


@dataclass(frozen=True)
class At:
    """Where normal equations are gathered.

    Args:
        model: such as ``Heston()``. A choice that it makes by the quotes, as between shared and scattered expiries, has
            to be made here: the quotes of a partition must not change the arithmetic.
        reference: parameters by name or in order; the model's first canonical start by default, which is where
            ``Calibration.state`` is computed.
        panel: a label, such as "date": one block for each of its values.

    Raises:
        ParameterError: the reference is not a point of the model.
        UsageError: the model has no latent parameter for a panel; ``point`` raises both.
    """

    model: Model
    reference: Theta | None = None
    panel: str | None = None

    def point(self) -> Point:
        """Return the same with numbers for the reference, checked."""
        model = replace(self.model, expiries="shared") if _chooses(self.model) else self.model
        space = model.parameters
        reference = space.vector(space.starts[0] if self.reference is None else self.reference)
        point = Point(model, tuple(reference.tolist()), self.panel)
        point.latent  # noqa: B018 - raises if the model has none
        return point


def _chooses(model: Model) -> TypeGuard[Heston]:
    """Return whether the model would choose by the quotes how it prices them."""
    return isinstance(model, Heston) and model.expiries is None


def gather(
    lake: Lake | str | PathLike[str],
    *,
    tags: str | Sequence[str] = (),
    weights: str = "given",
    basis: Basis | None = None,
    at: At | None = None,
    cache: str | PathLike[str] | None = None,
    engine: Engine | str | int | None = None,
    progress: Progress | None = None,
) -> Gathered:
    """Return the exact states of a lake's quotes by partition and tag. The engine and its workers change no bit.

    Args:
        lake: or its path.
        tags: labels to keep apart, such as ("licence", "source"): their quotes can be removed without a file.
        weights: of the squared residuals, a rule as for ``moments_of``.
        basis: the grid of the moments.
        at: ``At(model, ...)`` for exact normal equations at a reference instead of moments: one system for all quotes,
            or one block per group of a panel.
        cache: a folder for states, by the content of their partition: a second run reads no quote of unchanged files.
            What it holds is to be guarded like the quotes.
        engine: as for ``engine_named``: processes of this machine by default.
        progress: called with a partition, the number of finished partitions and of all.

    Raises:
        UnreadableFileError: there are no files.
        UsageError: an unknown engine, or a tag that quotes do not have.
        RefusedError: a partition cannot be read (the error names it), a book lies in two partitions, a worker computes
            with other bits than this process, or two answers for one batch differ.
    """
    lake = lake if isinstance(lake, Lake) else Lake(lake)
    names = (tags,) if isinstance(tags, str) else tuple(tags)
    folder = None if cache is None else str(cache)
    plan = Plan(lake, names, weights, basis or Basis(), folder, point=None if at is None else at.point())
    found = _collected(plan, lake.partitions, engine_named(engine), progress)
    _refuse_divided_books(found.receipts, lake.each)
    return found


def _collected(plan: Plan, partitions: Sequence[str], engine: Engine, progress: Progress | None) -> Gathered:
    """Return the states of some partitions, each of them once."""
    size = min(max(1, ceil(len(partitions) / (BATCHES_PER_WORKER * max(engine.workers, 1)))), LARGEST_BATCH)
    batches = [tuple(partitions[place : place + size]) for place in range(0, len(partitions), size)]
    if len(batches) == 1:
        engine = Here()
    seen: dict[tuple[str, ...], Answer] = {}
    digests: dict[tuple[str, ...], bytes] = {}
    spill, parts, receipts, done = Spill(plan), list[SpilledPart](), list[Receipt](), 0
    for answer in engine.answers(partial(answer_batch, plan), batches):
        _refuse_other_arithmetic(answer)
        digest = b"".join(map(seal_of, answer.sealed))
        if answer.batch in seen:
            _refuse_two_answers(seen[answer.batch], digests[answer.batch], answer, digest)
            continue
        _refuse_errors(answer)
        seen[answer.batch], digests[answer.batch] = replace(answer, sealed=()), digest
        own = []
        for sealed in answer.sealed:
            receipt, states = unseal(sealed)
            own.append(receipt)
            parts += spill.keep(sealed, states)
        _refuse_other_partitions(answer, own)
        receipts += own
        done += len(answer.batch)
        if progress is not None:
            progress(answer.batch[-1], done, len(partitions))
    missing = [batch for batch in batches if batch not in seen]
    if missing:
        raise RefusedError(
            f"{len(missing):,} of {len(batches):,} batches have no answer, the first {missing[0][0]}. Gather again.",
            batches=len(missing),
        )
    return Gathered(
        plan,
        tuple(sorted(parts, key=_place)),
        tuple(sorted(receipts, key=lambda receipt: receipt.partition)),
        sum(answer.reused for answer in seen.values()),
        engine,
    )


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")


def _place(part: SpilledPart) -> tuple[str, tuple[str, ...]]:
    return part.partition, part.tags


def _digests(parts: Iterable[SpilledPart]) -> dict[tuple[str, tuple[str, ...]], str]:
    return {_place(part): part.state.digest() for part in parts}


def _refuse_other_arithmetic(answer: Answer) -> None:
    if answer.canary != canary():
        apart = difference(answer.build, build_of(Heston().name))
        raise RefusedError(
            f"The worker {answer.worker} computes with other last bits than this process. {apart} Install the same "
            "versions on all workers.".replace("  ", " "),
            worker=answer.worker,
        )


def _refuse_other_partitions(answer: Answer, receipts: Sequence[Receipt]) -> None:
    found = tuple(receipt.partition for receipt in receipts)
    if found != answer.batch:
        raise RefusedError(
            f"The worker {answer.worker} was asked for {many(len(answer.batch), 'partition')} from {answer.batch[0]} "
            f"on and answered for {', '.join(found[:3]) or 'none'}. Gather again, without this worker.",
            worker=answer.worker,
            asked=list(answer.batch),
            answered=list(found),
        )


def _refuse_two_answers(first: Answer, digest: bytes, second: Answer, other: bytes) -> None:
    if digest != other:
        raise RefusedError(
            f"The workers {first.worker} and {second.worker} have different states of the same partitions, the first "
            f"{first.batch[0]}. A file changed meanwhile, or one of the machines is faulty. Gather again.",
            workers=[first.worker, second.worker],
        )


def _refuse_errors(answer: Answer) -> None:
    for partition, error in answer.errors:
        raise _named(partition, error)


def _named(partition: str, error: StrikeoutError) -> StrikeoutError:
    text = str(error)
    return RefusedError(text if partition in text else f"{partition}: {text}", partition=partition, cause=error.code)


def _refuse_divided_books(receipts: Iterable[Receipt], each: Sequence[str]) -> None:
    homes: dict[tuple[str, ...], str] = {}
    for receipt in receipts:
        for book in receipt.books:
            if book in homes:
                what = ", ".join(f"{name} {value}" for name, value in zip(each, book, strict=True) if value)
                raise RefusedError(
                    f"Quotes of {what} lie in {homes[book]} and in {receipt.partition}; if one is in both, it would "
                    "count twice. Put them in one file, or name what keeps them apart (Lake(..., each=...)).",
                    partitions=[homes[book], receipt.partition],
                )
            homes[book] = receipt.partition
