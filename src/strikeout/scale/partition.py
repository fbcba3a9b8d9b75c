"""The state of one partition: read, checked, divided by tags and summed; what a worker does, and what it sends back.

answer of a partition, and file of the cache:   one line of canonical JSON (receipt, tags and length of each state),
                                                the states one after the other, and 32 bytes of SHA-256 of all before
"""

from __future__ import annotations

import os
import socket
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from strikeout.assurance.build import build_of
from strikeout.assurance.canonical import canonical, parse
from strikeout.assurance.state_codec import (
    decode_moments,
    decode_state,
    described_schema,
    encode_moments,
    encode_state,
    refuse_damage,
    remade_schema,
)
from strikeout.calibration.panels import latent_of
from strikeout.errors import RefusedError, StrikeoutError, UsageError
from strikeout.kernels.arrays import Mask
from strikeout.models.heston import Heston
from strikeout.models.model import Model
from strikeout.quotes.contracts import Contracts
from strikeout.quotes.forwards import shares_forwards
from strikeout.quotes.quotes import Quotes
from strikeout.quotes.selection import select
from strikeout.quotes.writing import replace_file
from strikeout.scale.lake import Lake
from strikeout.statistics.groups import Groups, column_of, groups_of
from strikeout.statistics.linearize import footprints_of, normal_equations_of
from strikeout.statistics.moments import Basis, Moments, moments_by_group, moments_of
from strikeout.statistics.normal_equations import NormalEquations, Schema, schema_of
from strikeout.statistics.system import WHOLE, Group, System

PARTITION = "partition"
MOST_LISTED = 20  # ids of quotes left out, in a receipt
_SEAL = 32


@dataclass(frozen=True)
class Receipt:
    """What was read of one partition and what became of it.

    Attributes:
        content: digest of its bytes.
        rows, count: its rows, and the quotes in its states.
        rejected: rows left out by the rules of reading.
        left_out: quotes that the states cannot hold; ``left_out_ids`` are the first of them.
        books: the values of the lake's ``each`` that occur.
        is_joint: derived forwards depend on quotes of different tags, so that a state without one of the tags takes
            reading the partition again.
    """

    partition: str
    content: str
    rows: int
    count: int
    rejected: int
    left_out: int
    left_out_ids: tuple[str, ...]
    books: tuple[tuple[str, ...], ...]
    is_joint: bool


State = Moments | System


@dataclass(frozen=True)
class Part:
    """The state of the quotes of one partition that share the values of the tags."""

    partition: str
    tags: tuple[str, ...]
    state: State
    span: tuple[int, int] = field(default=(0, 0), compare=False)  # where sealed bytes have it, if it was read from some

    @property
    def count(self) -> int:
        """The quotes in the state."""
        return len(self.state) if isinstance(self.state, Moments) else self.state.count


@dataclass(frozen=True)
class Point:
    """Where normal equations are taken: a model, its parameters, and the label of a panel, if it is one."""

    model: Model
    reference: tuple[float, ...]
    panel: str | None = None

    @property
    def latent(self) -> str | None:
        """The parameter that every group of the panel has for itself."""
        return None if self.panel is None else latent_of(self.model)

    def schema(self, weights: str) -> Schema:
        """Return the schema of all states."""
        return schema_of(self.model, self.reference, weights=weights)

    def system(self, quotes: Quotes, weights: str) -> System:
        """Return the normal equations of quotes, by group if it is a panel.

        Raises:
            RefusedError: a quote cannot be counted exactly; the error names it.
        """
        if self.panel is None:
            return System.of(normal_equations_of(quotes, self.model, self.reference, weights=weights))
        blocks: dict[Group, NormalEquations] = {}
        if len(quotes):
            groups = groups_of(quotes, self.panel)
            for number, group in enumerate(groups.keys[self.panel].tolist()):
                own = quotes[groups.number == number]
                blocks[str(group)] = normal_equations_of(own, self.model, self.reference, weights=weights)
        return System(blocks, self.latent)

    def described(self) -> str:
        """Return what a state depends on, as text."""
        return repr((self.model.name, tuple(value.hex() for value in self.reference), self.panel))


@dataclass(frozen=True)
class Removal:
    """Quotes to leave out of partitions: those with all of these tag values, and those that match a condition."""

    tags: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    where: str | None = None

    def ids(self, quotes: Quotes) -> list[str]:
        """Return the ids of the quotes to leave out."""
        gone = np.zeros(len(quotes), bool)
        if self.tags:
            gone |= np.logical_and.reduce(
                [np.isin(column_of(quotes, name).astype(str), values) for name, values in self.tags.items()]
            )
        if self.where is not None:
            gone |= np.isin(quotes.ids, select(quotes, self.where))
        return [str(name) for name in quotes.ids[gone]]


@dataclass(frozen=True)
class Plan:
    """What is to be computed of each partition of a lake."""

    lake: Lake
    tags: tuple[str, ...] = ()
    weights: str = "given"
    basis: Basis = field(default_factory=Basis)
    folder: str | None = None  # of the cache
    removal: Removal | None = None
    point: Point | None = None  # of normal equations; moments are gathered without it

    def decoded(self, data: bytes) -> State:
        """Return a state of this plan from its bytes."""
        return _decoded(data, None if self.point is None else self.point.schema(self.weights), self.latent)

    @property
    def latent(self) -> str | None:
        """The parameter of each group of a panel."""
        return None if self.point is None else self.point.latent

    def total(self, states: Sequence[State]) -> State:
        """Return the sum of states of this plan."""
        if self.point is None:
            moments = [state for state in states if isinstance(state, Moments)]
            return Moments.total(moments) if moments else Moments.zero(self.basis, weights=self.weights)
        blocks: dict[Group, list[NormalEquations]] = {} if self.point.panel else {WHOLE: []}
        for state in states:
            assert isinstance(state, System)
            for group, block in state.blocks.items():
                blocks.setdefault(group, []).append(block)
        zero = NormalEquations.zero(self.point.schema(self.weights))
        return System({group: NormalEquations.total([zero, *own]) for group, own in blocks.items()}, self.latent)


@dataclass(frozen=True)
class Answer:
    """What a worker sends back of a batch: for each partition its sealed bytes, or an error."""

    batch: tuple[str, ...]
    sealed: tuple[bytes, ...]
    errors: tuple[tuple[str, StrikeoutError], ...]
    canary: str
    build: Mapping[str, str]
    worker: str
    reused: int  # partitions whose states were in the cache


def answer_batch(plan: Plan, batch: tuple[str, ...]) -> Answer:
    """Compute the states of the partitions of a batch; a partition that is refused is an error in the answer."""
    sealed, errors, reused = [], [], 0
    for partition in batch:
        try:
            found, was_kept = sealed_states(plan, partition)
        except StrikeoutError as error:
            errors.append((partition, error))
        else:
            sealed.append(found)
            reused += was_kept
    build = build_of(Heston().name)
    return Answer(batch, tuple(sealed), tuple(errors), canary(), build, f"{socket.gethostname()}:{os.getpid()}", reused)


def sealed_states(plan: Plan, partition: str) -> tuple[bytes, bool]:
    """Return the states of a partition as sealed bytes, and whether they were in the cache.

    Raises:
        StrikeoutError: the partition cannot be read, or lacks a tag.
    """
    content = plan.lake.content(partition)
    place = None if plan.folder is None or plan.removal is not None else _place(plan, partition, content)
    if place is not None:
        with suppress(OSError):
            kept = place.read_bytes()
            if _kept_receipt(kept, partition, content) is not None:
                return kept, True
    made = seal(*states_of(plan, partition, content))
    if place is not None:
        place.parent.mkdir(parents=True, exist_ok=True)
        replace_file(place, lambda part: part.write_bytes(made))
    return made, False


def _kept_receipt(data: bytes, partition: str, content: str) -> Receipt | None:
    """Return the receipt in bytes of the cache if they are the states of a partition with this content.

    None for those of another one, or of what it contained before quotes were removed from it, under this name.
    """
    if not is_whole(data):
        return None
    try:
        with refuse_damage(data):
            receipt = _receipt(parse(data[: data.find(b"\n")]))
    except RefusedError:
        return None
    return receipt if (receipt.partition, receipt.content) == (partition, content) else None


def _place(plan: Plan, partition: str, content: str) -> Path:
    """Return the file of the cache: its name depends on everything that the states depend on."""
    lines = [partition, content, plan.lake.settings(), repr(plan.tags), plan.weights, plan.basis.name, canary()]
    lines += [] if plan.point is None else [plan.point.described()]
    key = sha256("\n".join(lines).encode("utf-8", "surrogatepass")).hexdigest()
    return Path(str(plan.folder)) / key[:2] / f"{key}.states"


def kept_states(plan: Plan, partition: str) -> Receipt | None:
    """Return the receipt of a partition if its states are in the cache, for its present content.

    Raises:
        UnreadableFileError: the partition cannot be read.
    """
    content = plan.lake.content(partition)
    with suppress(OSError):
        return _kept_receipt(_place(plan, partition, content).read_bytes(), partition, content)
    return None


def states_of(plan: Plan, partition: str, content: str) -> tuple[Receipt, list[Part]]:
    """Read a partition and return its receipt and the state of each combination of tags.

    Raises:
        StrikeoutError: the partition cannot be read, or lacks a tag or a label of ``each``.
    """
    reading = plan.lake.read(partition)
    quotes = reading.quotes
    books = _books(quotes, plan.lake.each)
    if plan.removal is not None:
        gone = plan.removal.ids(quotes)
        quotes = quotes.without(gone) if gone else quotes
    groups = groups_of(quotes, list(plan.tags)) if plan.tags and len(quotes) else _one_group(quotes)
    states, unfit = _states(plan, quotes, groups)
    every = [
        Part(partition, tuple(str(groups.keys[name][number]) for name in plan.tags), state)
        for number, state in enumerate(states)
    ]
    parts = [part for part in every if part.count]
    is_joint = groups.count > 1 and shares_forwards(quotes, groups.number)
    left_out = quotes.ids[unfit].tolist()
    receipt = Receipt(
        partition, content, reading.rows, sum(part.count for part in parts), reading.rejected,
        len(left_out), tuple(sorted(left_out)[:MOST_LISTED]), books, is_joint,
    )  # fmt: skip
    return receipt, parts


def _states(plan: Plan, quotes: Quotes, groups: Groups) -> tuple[Sequence[State], Mask]:
    """Return the state of each group, and which quotes are in none because it cannot hold them."""
    if plan.point is None:
        return moments_by_group(quotes, groups, weights=plan.weights, basis=plan.basis)
    unfit, states = np.zeros(len(quotes), bool), []
    for number in range(groups.count):
        rows = np.flatnonzero(groups.number == number)
        own = quotes if len(rows) == len(quotes) else quotes[rows]
        try:
            states.append(plan.point.system(own, plan.weights))
        except RefusedError as error:
            bad = np.isin(own.ids, error.facts.get("ids", []))
            if not bad.any():
                raise
            unfit[rows[bad]] = True
            states.append(plan.point.system(own[~bad], plan.weights))
    return states, unfit


def _books(quotes: Quotes, each: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    if not len(quotes):
        return ()
    known = [name for name in each if name in quotes.labels]
    if not known:
        raise UsageError(
            f"The quotes have none of the labels {', '.join(each)}, so that a quote in two partitions cannot be found. "
            "Name the labels of one book: Lake(..., each=...).",
        )
    groups = groups_of(quotes, known)
    columns = [groups.keys[name].astype(str).tolist() if name in known else [""] * groups.count for name in each]
    return tuple(sorted(zip(*columns, strict=True)))


def _one_group(quotes: Quotes) -> Groups:
    return Groups({}, np.zeros(len(quotes), np.intp), 1)


def seal(receipt: Receipt, parts: Sequence[Part]) -> bytes:
    """Return a receipt and its states as bytes that ``unseal`` checks."""
    states = [_encoded(part.state) for part in parts]
    schemas = [None if isinstance(part.state, Moments) else _schema_of(part.state) for part in parts]
    head = {
        "receipt": asdict(receipt),
        "schemas": [None if schema is None else described_schema(schema) for schema in schemas],
        "latents": [None if isinstance(part.state, Moments) else part.state.latent for part in parts],
        "tags": [part.tags for part in parts],
        "sizes": [len(state) for state in states],
    }
    body = canonical(head) + b"\n" + b"".join(states)
    return body + sha256(body).digest()


def seal_of(data: bytes) -> bytes:
    """Return the digest that sealed bytes end with; ``is_whole`` checks it."""
    return data[-_SEAL:]


def is_whole(data: bytes) -> bool:
    """Return whether sealed bytes are as they were written."""
    return sha256(memoryview(data)[:-_SEAL]).digest() == seal_of(data)


def unseal(data: bytes) -> tuple[Receipt, list[Part]]:
    """Return what ``seal`` wrote.

    Raises:
        RefusedError: the bytes were changed.
    """
    if not is_whole(data):
        raise RefusedError(f"States of {len(data):,} bytes were changed on their way or in the cache. Gather again.")
    line = data[: data.find(b"\n")]
    with refuse_damage(data):  # the seal needs no key: a person who can write to the cache can make it match
        head = parse(line)
        receipt = _receipt(head)
        parts, place = [], len(line) + 1
        for tags, size, schema, latent in zip(
            head["tags"], head["sizes"], head["schemas"], head["latents"], strict=True
        ):
            made = None if schema is None else remade_schema(schema)
            state = _decoded(data[place : place + size], made, latent)
            parts.append(Part(receipt.partition, tuple(tags), state, (place, place + size)))
            place += size
        return receipt, parts


def _receipt(head: Mapping[str, Any]) -> Receipt:
    given = head["receipt"]
    listed = {"left_out_ids": tuple(given["left_out_ids"]), "books": tuple(map(tuple, given["books"]))}
    return Receipt(**{**given, **listed})


def _schema_of(state: System) -> Schema:
    """Return the schema of all blocks, which are at one reference."""
    return next(iter(state.blocks.values())).schema


def _encoded(state: State) -> bytes:
    return encode_moments(state) if isinstance(state, Moments) else encode_state(_schema_of(state), state)


def _decoded(data: bytes, schema: Schema | None, latent: str | None) -> State:
    return decode_moments(data) if schema is None else decode_state(schema, defaultdict(lambda: schema), latent, data)


@cache
def canary() -> str:
    """Return a digest of a fixed calculation: workers with other arithmetic have another."""
    n = 512
    i = np.arange(n, dtype=np.float64)
    contracts = Contracts(
        forward=np.full(n, 97.0),
        strike=64.0 + i / 8.0,
        expiry=(7.0 + (i % 61.0) * 11.0) / 365.0,
        discount=np.full(n, 0.984375),
        is_call=i % 2.0 == 0.0,
    )
    quotes = Quotes(
        ids=[f"q{k}" for k in range(n)], contracts=contracts, observed=contracts.intrinsic + 1.0 + (i % 17.0) / 16.0
    )
    rows = footprints_of(quotes, Heston(), Heston().parameters.starts[0])
    return sha256((moments_of(quotes).digest() + rows.total().digest()).encode()).hexdigest()
