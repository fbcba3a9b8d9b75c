"""What is fuzzed: everything that reads something of others. Any input gives a result or a StrikeoutError.

A target takes bytes, does what a user would do with them, and gives back how far it came, which the search tries to
raise. Every other exception, a process that dies and an answer after more than LIMIT seconds of work is a finding.
"""

from __future__ import annotations

import io
import json
import tempfile
import warnings
from collections.abc import Callable, Mapping
from contextlib import chdir, contextmanager
from dataclasses import dataclass
from datetime import date
from functools import cache
from hashlib import sha256
from pathlib import Path
from time import thread_time
from typing import TypeVar

import numpy as np
from click.testing import CliRunner
from hypothesis import strategies as st
from pydantic import BaseModel

import strikeout as so
from strikeout.assurance.canonical import canonical
from strikeout.assurance.certificate import Certificate
from strikeout.assurance.state_codec import encode_moments
from strikeout.book.forget import Plan
from strikeout.cli import strikeout
from strikeout.cli.configuration import configuration
from strikeout.errors import StrikeoutError
from strikeout.quotes.dividends import Dividends, cash_flows
from strikeout.quotes.parquet_metadata import check_parquet
from strikeout.quotes.profile import profile_of
from strikeout.quotes.rates import RateCurve
from strikeout.quotes.selection import select
from strikeout.scale import exchange, read_states
from strikeout.scale.partition import is_whole, unseal
from strikeout.service.people import parse_tokens
from strikeout.service.problems import INTERNAL, ExactJSON
from strikeout.service.schemas import CalibrateBody, EraseBody, ForgetBody, PlanBody, RequestBody, RestoreBody
from strikeout.service.worker import Worker
from strikeout.statistics.moments import Moments
from strikeout.store.keyring import Keyring, Signer
from strikeout.store.ledger import Head
from tests.fuzz.mutations import mutated, mutated_json, seeds
from tests.quotes.in_chunks import in_chunks

Read = TypeVar("Read")
LIMIT = 20.0  # seconds of processor time for one input of a few kilobytes: far above what any of them needs


class TooSlowError(AssertionError):
    """An input took longer than LIMIT."""


@dataclass(frozen=True)
class Target:
    """Something to fuzz: where its seeds are from, words of its language, and what is done with an input."""

    known: Callable[[], tuple[bytes, ...]]
    words: tuple[bytes, ...]
    use: Callable[[bytes], float]
    is_json: bool = False

    def inputs(self) -> st.SearchStrategy[bytes]:
        """What is tried: bytes near a seed, and of JSON also other values in the form of a seed."""
        near = mutated(self.known(), self.words)
        return near | mutated_json(self.known()) if self.is_json else near

    def __call__(self, data: bytes) -> float:
        """How far this input came; 0 if it was refused with a sentence.

        Raises:
            Exception: what must not happen.
        """
        begun = thread_time()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                reached = self.use(data)
        except StrikeoutError as error:
            if not error.sentence.strip():
                raise AssertionError("an error without a sentence") from error
            reached = 0.0
        took = thread_time() - begun
        if took > LIMIT:
            raise TooSlowError(f"{took:.1f} seconds for {len(data):,} bytes")
        return reached


@contextmanager
def written(data: bytes, name: str):
    """A file of this name that holds the input."""
    with tempfile.TemporaryDirectory(prefix="strikeout-fuzz-") as folder:
        path = Path(folder) / name
        path.write_bytes(data)
        path.chmod(0o600)  # a key that others can read is refused before it is looked at
        yield path


def _file(data: bytes, name: str, **options: str) -> float:
    """Reads a file as a whole and in pieces, which must agree; what was read is written and read again."""
    with written(data, name) as path:
        whole = _tried(lambda: so.inspect_quotes(path, **options))
        pieces = _tried(lambda: in_chunks(path, size=300, at_once=5, **options))
        if isinstance(whole, StrikeoutError) or isinstance(pieces, StrikeoutError):
            assert type(whole) is type(pieces), (whole, pieces)
            return 0.0
        reading = whole
        with pieces as survey:
            for count in ("rows", "count", "rejected", "repeated"):
                assert getattr(survey, count) == getattr(reading, count), count
        reading.summary()
        reading.write_quarantine(path.parent / "bad.csv")
        if reading.count:
            back = so.read_quotes(so.write_quotes(reading.quotes, path.parent / "back.csv"))
            assert back.ids.tolist() == reading.quotes.ids.tolist()
            for label, values in reading.quotes.labels.items():
                if values.dtype.kind == "O":
                    assert back.labels[label].tolist() == values.tolist() if label in back.labels else not any(values)
        return reading.count + len(reading.issues.counts)


def _tried(read: Callable[[], Read]) -> Read | StrikeoutError:
    try:
        return read()
    except StrikeoutError as error:
        return error


def _condition(data: bytes) -> float:
    return 1.0 + len(select(_quotes(), data.decode("utf-8", "surrogateescape")))


def _profile(data: bytes) -> float:
    """Reads a profile, and by it a file with a cell of its own kind in every column."""
    with written(data, "fuzz.toml") as path:
        header = profile_of(path).header or ("K",)
        cells = [CELLS[place % len(CELLS)] for place in range(len(header))]
        (path.parent / "a.csv").write_text("\n".join(map(",".join, (header, cells, reversed(cells)))))
        read = _tried(lambda: so.inspect_quotes(path.parent / "a.csv", profile=path))
    return 1.0 if isinstance(read, StrikeoutError) else 2.0


def _settings(data: bytes) -> float:
    with written(data, "strikeout.toml") as path:
        return 1.0 + len(configuration(folder=path.parent, variables={}).values)


def _certificate(data: bytes) -> float:
    so.verify(data, _quotes()[:3])
    Certificate.from_bytes(data).summary()
    return 1.0


def _plan(data: bytes) -> float:
    plan = Plan.from_bytes(data)
    plan.summary()
    plan.digest()
    return 1.0


def _book(data: bytes) -> float:
    with written(_kept()["key"], "a.book.key") as key:
        path = key.with_name("a.book")
        path.write_bytes(data)
        with so.Book.open(path) as book:
            book.status()
            book.log()
            book.summary()
            return 1.0 + len(book.quotes())


def _key(data: bytes) -> float:
    with written(data, "a.book.key") as path:
        Keyring.read(path)
    return 1.0


def _head(data: bytes) -> float:
    Head.parse(data.decode("utf-8", "replace"))
    return 1.0


def _footer(data: bytes) -> float:
    """Metadata of a Parquet file, behind pages that are whole and with its length as it is."""
    with written(_pages() + data + len(data).to_bytes(4, "little") + b"PAR1", "a.parquet") as path:
        check_parquet(path)
        return 1.0 + so.inspect_quotes(path).count


def _rates(data: bytes) -> float:
    with written(data, "curve.csv") as path:
        RateCurve.of(path)
    return 1.0


def _dividends(data: bytes) -> float:
    """A schedule of dividends: the label that a quote gets by it, and American quotes that are read with it."""
    with written(data, "dividends.csv") as path:
        schedule = Dividends.of(path)
        label = schedule.text("SPY", date(2024, 1, 2), 0.5)
        if label:
            cash_flows(label).forward(np.array([100.0]), 0.5, np.array([0.03]))
        chain = path.with_name("chain.csv")
        chain.write_bytes(seeds("american")[0])
        return 1.0 + so.inspect_quotes(chain, exercise="auto", dividends=path).count


def _owner(data: bytes) -> float:
    """States of an owner whose key is trusted and who signs whatever this is."""
    signer = _signer()
    with written(data + signer.sign(data).encode(), "a.states") as path:
        read = read_states(path, key={"north": signer.public})
    return 1.0 + len(Moments.total([read.state, read.state]))


def _sealed(data: bytes) -> float:
    """A file of a lake's cache, sealed by whoever changed it."""
    _, parts = unseal(data + sha256(data).digest())
    return 1.0 + sum(part.count for part in parts)


def _tokens(data: bytes) -> float:
    return 1.0 + len(parse_tokens(data.decode("utf-8", "replace"), "tokens"))


def _request(data: bytes) -> float:
    """A request to the service: its body is checked as the route does, and a worker does what it asks for."""
    try:
        asked = json.loads(data)
        verb, model = str(asked["verb"]), BODIES[str(asked["verb"])]
        arguments = model.model_validate_json(json.dumps(asked["body"])).model_dump(exclude_unset=True)
    except (ValueError, KeyError, TypeError, RecursionError):  # pydantic's errors are ValueErrors
        return 0.0
    arguments.pop("confirm", None)
    with written(_kept()["key"], "a.book.key") as key:
        path = key.with_name("a.book")
        path.write_bytes(_kept()["book"])
        answers = io.StringIO()
        worker = Worker(answers)
        worker.run({"verb": verb, "path": str(path), "who": "fuzz", "head": None, "arguments": arguments})
        worker._shelf.close(str(path))
    last = json.loads(answers.getvalue().splitlines()[-1])
    assert last.get("problem", {}).get("code") != INTERNAL, last
    ExactJSON(last)
    return 2.0 if "done" in last else 1.0


BODIES: Mapping[str, type[BaseModel]] = {
    "plan": PlanBody,
    "forget": ForgetBody,
    "restore": RestoreBody,
    "rehearse": EraseBody,
    "erase": EraseBody,
    "calibrate": CalibrateBody,
    "request": RequestBody,
}


@cache
def _signer() -> Signer:
    return Keyring.generate().signer()


@cache
def _states() -> bytes:
    state, signer = so.states.moments_of(_quotes()), _signer()
    head = {
        "format": exchange.FORMAT, "owner": "north", "public": signer.public, "count": state.count,
        "digest": state.digest(),
    }  # fmt: skip
    return canonical(head) + b"\n" + encode_moments(state)


@cache
def _cached() -> bytes:
    """What a lake's cache holds of a file, without its seal."""
    with tempfile.TemporaryDirectory(prefix="strikeout-fuzz-") as folder:
        so.write_quotes(_quotes(), Path(folder) / "a.csv")
        cache_of_states = Path(folder) / "cache"
        so.scale.gather(so.scale.Lake(str(Path(folder) / "a.csv")), cache=cache_of_states)
        (file,) = (path for path in cache_of_states.rglob("*") if path.is_file() and is_whole(path.read_bytes()))
        return file.read_bytes()[:-32]


def _pages() -> bytes:
    data = _kept()["parquet"]
    return data[: -8 - int.from_bytes(data[-8:-4], "little")]


def _command(data: bytes) -> float:
    """Words of a command line, one a line, on a file of a few quotes."""
    words = data.decode("utf-8", "replace").replace("\0", "").split("\n")
    with written(b"", "none") as path:
        so.write_quotes(_quotes()[:8], path.parent / "a.csv")
        placed = [str(path.parent / "a.csv") if word == "FILE" else word for word in words]
        with chdir(path.parent):
            ended = CliRunner().invoke(strikeout, placed)
    if ended.exception is not None and not isinstance(ended.exception, SystemExit):
        raise ended.exception
    assert ended.exit_code != 4, ended.stderr
    return 2.0 if ended.exit_code == 0 else 0.0


@cache
def _quotes() -> so.Quotes:
    return so.paper.quotes("small", seed=1)[:40]


@cache
def _kept() -> Mapping[str, bytes]:
    """A book, its key, a plan and a certificate: made now, since their forms may change."""
    with tempfile.TemporaryDirectory(prefix="strikeout-fuzz-") as folder:
        path = Path(folder) / "a.book"
        with so.Book.create(path) as book:
            book.import_quotes(_quotes())
            book.calibrate(panel=None)
            plan = book.plan_forget(ids=[str(_quotes().ids[0])], reason="test")
        frame = _quotes().to_frame()
        frame.write_parquet(path.with_suffix(".parquet"))
        return {
            "book": path.read_bytes(),
            "key": path.with_name("a.book.key").read_bytes(),
            "plan": plan.to_bytes(),
            "certificate": plan.certificate.to_bytes(),
            "parquet": path.with_suffix(".parquet").read_bytes(),
        }


def _made(name: str) -> Callable[[], tuple[bytes, ...]]:
    return lambda: (_kept()[name],)


def _committed(name: str) -> Callable[[], tuple[bytes, ...]]:
    return lambda: seeds(name)


CELLS = ("1", "2024-01-31", "x", "SPXW  260821C05000000", "", "-99.99", "1706700000000")
COLUMNS = (b"strike", b"right", b"price", b"bid", b"ask", b"forward", b"discount", b"expiry", b"quote_date", b"C", b"P")
AMERICAN = (*COLUMNS, b"exercise", b"American", b"spot", b"rate", b"dividends", b"escrowed 0.1:1.5", b" tail 0.2:0.01")
SQL = (
    b" and ", b" or ", b"select ", b" from quotes", b"strike", b"id", b"like", b"glob", b"date(", b"'now'", b"replace(",
    b"instr(", b"trim(", b"count(*)", b"union", b"with recursive", b";", b"case when", b"cast(", b"x'00'", b"?1", b":a",
)  # fmt: skip
JSON = (b"null", b"[]", b"{}", b'"":', b"1.5", b"-1", b"true", b'"x"', b"1e999", b'"0x1.8p+1"', b'"nan"', b'"\\ud800"')
TOML = (
    b"[columns]",
    b"column = ",
    b"divide = 0",
    b"format = '%Q'",
    b"extract = '('",
    b"2024-01-31",
    b"{ a = 1 }",
    b"= 5",
)
OPTIONS = (
    b"\n--json", b"\n--panel\ndate", b"\n--where\nstrike = 90", b"\n--by\nsource", b"\n--starts\n1", b"\n--fix\na=1",
    b"\n--bound\ncorrelation=-1:1", b"\n--check\nQ208=0.3", b"\n--constant\nrate=0", b"\n--profile\ntidy", b"\nFILE",
    b"\n--max-reject\n2", b"\n--ids\nx", b"\n--model\nsabr", b"\n--weights\nvega", b"\n--tolerance\n-1",
)  # fmt: skip
TARGETS: Mapping[str, Target] = {
    "csv": Target(_committed("csv"), COLUMNS, lambda data: _file(data, "a.csv")),
    "gzip": Target(_committed("csv"), COLUMNS, lambda data: _file(_packed(data), "a.csv.gz")),
    "parquet": Target(_made("parquet"), (), lambda data: _file(data, "a.parquet")),
    "condition": Target(_committed("condition"), SQL, _condition),
    "profile": Target(_committed("profile"), TOML, _profile),
    "settings": Target(_committed("settings"), TOML, _settings),
    "certificate": Target(_made("certificate"), JSON, _certificate, is_json=True),
    "plan": Target(_made("plan"), JSON, _plan, is_json=True),
    "book": Target(_made("book"), (), _book),
    "key": Target(_made("key"), JSON, _key, is_json=True),
    "head": Target(lambda: (b"3:" + b"0" * 64,), (b":",), _head),
    "footer": Target(lambda: (_kept()["parquet"][len(_pages()) : -8],), (), _footer),
    "american": Target(_committed("american"), AMERICAN, lambda data: _file(data, "a.csv", exercise="auto")),
    "dividends": Target(_committed("dividends"), (b"ex_date", b"amount", b"yield", b"1e400"), _dividends),
    "rates": Target(_committed("rates"), (b"days", b"months", b"years", b"rate"), _rates),
    "owner": Target(lambda: (_states(),), JSON, _owner),
    "cache": Target(lambda: (_cached(),), JSON, _sealed),
    "tokens": Target(_committed("tokens"), (b"reader", b"admin", b"sha256:", b"#"), _tokens),
    "request": Target(_committed("request"), (*JSON, *SQL), _request, is_json=True),
    "command": Target(_committed("command"), OPTIONS, _command),
}


def _packed(data: bytes) -> bytes:
    """The input compressed; damaged at its end if it ends in a zero, so that damage is tried too."""
    import gzip

    packed = gzip.compress(data, 1)
    return packed[: -1 - len(packed) // 4] if data.endswith(b"\0") else packed
