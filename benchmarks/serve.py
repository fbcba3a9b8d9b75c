"""The pages of a book of 100,000 quotes, over a real socket: the first chart, a what-if by a box of 27 quotes."""

from __future__ import annotations

import os
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import strikeout as so
from benchmarks.rows import Result, Row

DAYS, MATURITIES, STRIKES = 250, (7, 14, 30, 60, 91, 122, 182, 273, 365, 547), 40
MOST_FIRST, MOST_WHAT_IF = 1.0, 0.150  # seconds that are promised on a quiet machine
MOST_BYTES, MOST_REQUESTS = 600_000, 12
FIRST_BOX = 40  # the day with which the first box begins


def day(number: int) -> str:
    """Return a trading day of the book."""
    return str(np.busday_offset("2024-01-02", number, roll="forward"))


def box(number: int) -> str:
    """Return a condition for three days, three maturities and three strikes; each number is another box."""
    days = ", ".join(f"'{day(FIRST_BOX + 2 * number + n)}'" for n in range(3))
    return (
        f"date in ({days}) and maturity >= 22 and maturity < 106 "
        "and log_moneyness > -0.02 * sqrt(expiry_years) and log_moneyness < 0.05 * sqrt(expiry_years)"
    )


def run(*, is_quick: bool, is_full: bool) -> Result:  # noqa: ARG001 - every benchmark takes both
    """Make the book, serve it, and ask for its pages as a browser does."""
    days, rounds = (110, 5) if is_quick else (DAYS, 25)
    with tempfile.TemporaryDirectory(prefix="strikeout-") as folder:
        with so.Book.create(Path(folder) / "large.book") as book:
            book.import_quotes(large_quotes(days))
            book.calibrate(panel=None)
        with _served(Path(folder)) as client:
            return _measured(client, is_quick=is_quick, rounds=rounds)


def _measured(client: Any, *, is_quick: bool, rounds: int) -> Result:
    page = client.get("/books/large")  # the worker calibrates once
    files = list(_files(page.text))
    weight = sum(int(each.headers["content-length"]) for each in (page, *map(client.get, files)))
    rows: list[Row] = []
    # Answers are kept until the book changes, so every round asks something new; the last rows ask it again.
    asked = {
        ("the page of the book with its charts", MOST_FIRST): lambda n: {
            "url": "/books/large",
            "params": {"date": day(n)},
        },
        ("what if, by a box", MOST_WHAT_IF): lambda n: {"url": "/books/large/what-if", "params": {"where": box(n)}},
        ("the same what if again", MOST_WHAT_IF): lambda _: {
            "url": "/books/large/what-if",
            "params": {"where": box(0)},
        },
    }
    for (task, most), how in asked.items():
        answer = client.get(**how(rounds))
        clock, processor = zip(*(_taken(client, how(n)) for n in range(rounds)), strict=True)
        note = f"quickest {1e3 * min(processor):.0f} ms; on the clock {1e3 * median(clock):.0f} ms"
        rows.append(Row(task, "seconds of the processor, median", median(processor), 1.0, note=note))
        rows.append(Row.allowed(task, most=most, taken=median(processor)))
    facts: dict[str, float | str] = {
        "quotes of the book": page.text.partition("<dt>held</dt><dd>")[2].partition("<")[0],
        "quotes of the box": answer.text.partition(" quotes struck out")[0].rpartition(">")[2].strip(),
        "bytes of the book page, compressed": f"{weight:,} of at most {MOST_BYTES:,}",
        "requests of the book page": f"{1 + len(files)} of at most {MOST_REQUESTS}",
    }
    return Result("serve", is_quick, tuple(rows), facts)


def _taken(client: Any, how: dict[str, Any]) -> tuple[float, float]:
    """Seconds of a request on the clock, and of the processor in this process and its worker."""
    spent, begun = _processor(), time.perf_counter()
    client.get(**how).raise_for_status()
    return time.perf_counter() - begun, _processor() - spent


def _processor() -> float:
    """Seconds of the processor that this process and its children, also those that still run, have taken."""
    tree = Path("/proc/self/task").glob("*/children")
    children = {pid for file in tree for pid in file.read_text().split()}
    fields = [Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split() for pid in children]
    ticks = os.sysconf("SC_CLK_TCK")
    return time.process_time() + sum(int(each[11]) + int(each[12]) for each in fields) / ticks


def large_quotes(days: int = DAYS) -> so.Quotes:
    """Calls and puts of ten maturities on many days with spreads, from two sources; on one day source b is 8 % dear."""
    from strikeout.synthetic.heston_quotes import TRUTH, heston_prices, vector_of

    rng = np.random.default_rng(7)
    grid = np.meshgrid(np.arange(days), MATURITIES, np.linspace(-0.6, 0.6, STRIKES), indexing="ij")
    day, term, deviations = (side.ravel() for side in grid)
    years, count = term / 365.0, len(day)
    strike = np.round(100.0 * np.exp(deviations * np.sqrt(years)), 2)
    contracts = so.Contracts(
        forward=np.full(count, 100.0), strike=strike, expiry=years, discount=np.ones(count), is_call=strike >= 100.0
    )
    price = heston_prices(vector_of(TRUTH), contracts)
    spread = 0.02 + 0.002 * price
    observed = np.maximum(price + 0.2 * spread * rng.standard_normal(count), 0.001)
    source = np.where(np.arange(count) % 2, "b", "a")
    observed = np.where((day == 100) & (source == "b"), 1.08 * observed, observed)
    dates = np.busday_offset("2024-01-02", np.arange(days), roll="forward").astype(str).astype(object)
    labels = {"date": dates[day], "source": source.astype(object)}
    names = [f"q{number:06d}" for number in range(count)]
    return so.Quotes(ids=names, contracts=contracts, observed=observed, spread=spread, labels=labels)


def _files(text: str) -> Iterator[str]:
    for part in text.split('="/static/')[1:]:
        yield "/static/" + part.partition('"')[0]


@contextmanager
def _served(folder: Path) -> Iterator[Any]:
    import httpx
    import uvicorn

    from strikeout.service.app import create_app
    from strikeout.service.desk import Desk
    from strikeout.service.library import Library
    from strikeout.service.people import OnePerson, Person, Role

    desk = Desk.of(Library(folder), OnePerson(Person("benchmark", Role.ADMIN)), workers=1)
    with (folder / "access.log").open("w") as log:
        app = create_app(desk, log=log)
        server = uvicorn.Server(
            uvicorn.Config(app, port=0, log_level="warning", access_log=False, timeout_keep_alive=60)
        )
        thread = threading.Thread(target=server.run, daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]
        headers = {"accept": "text/html", "accept-encoding": "gzip"}
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=120) as client:
            yield client
        server.should_exit = True
        thread.join(30)
