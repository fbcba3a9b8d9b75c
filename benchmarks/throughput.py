"""Quotes and chains per second of a core, by step and by workers; and what half a billion quotes then take."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from typing import Any, NamedTuple

import numpy as np
import polars as pl

import strikeout as so
from benchmarks.lake import CHAIN, LICENCES, _fleet, _folder, _lake
from benchmarks.rows import Result, Row
from strikeout.scale import Processes
from strikeout.scale.partition import Plan, seal, states_of
from strikeout.statistics.linearize import normal_equations_of
from strikeout.synthetic.heston_quotes import TRUTH

LAKES = {"500 million": 500e6, "50 billion": 50e9}
PARTITION = 500_000  # quotes of a file
ROUNDS = 3
WORKERS = (1, 2, 4, 8)


def run(*, is_quick: bool, is_full: bool, picture: Path | None = None) -> Result:  # noqa: ARG001
    """Measure every step on one core, gather with one worker and more, and scale up."""
    size, files, chains = (20_000, 8, 16) if is_quick else (500_000, 16, 128)
    with _folder() as folder:
        given = _lake(folder / "given", 1, size)
        derived = _derived(folder / "derived", size)
        rates, facts = _steps(given, derived)
        rows = [Row("one core, each quote", name, 1.0 / rate, note=_millions(rate)) for name, rate in rates.items()]
        lake = _lake(folder / "lake", files, size)
        speeds = _by_workers(lake, files * size)
        for count, speed in speeds.items():
            note = f"{_millions(speed.idle)}; by the clock of this machine {speed.clock / 1e6:.2f}"
            task, alone = "moments from files by processes, if each has a core", speeds[1].idle
            rows.append(Row(task, f"{count}", 1.0 / speed.idle, alone / speed.idle, note=note))
        fleet, _ = _fleet(folder / "chains", chains)
        facts["chains of 400 quotes per core-second"] = 1.0 / float(fleet[0].seconds or 1.0)
        facts |= _scaled_up(rates, facts)
    if picture is not None:
        _draw(speeds, picture)
    return Result("throughput", is_quick, tuple(rows), facts)


def _derived(folder: Path, size: int) -> so.scale.Lake:
    """Write a file with a call and a put at every strike, and no forward: it is derived by parity."""
    folder.mkdir()
    draws, half = np.random.default_rng(7), size // 2
    years = np.repeat(np.arange(7.0, 707.0, 14.0) / 365.0, half // 50)
    strike = np.round(100.0 * np.exp(0.15 * draws.normal(size=len(years)) * np.sqrt(years)), 4)
    columns = []
    for is_call in (True, False):
        contracts = so.Contracts(forward=100.0, strike=strike, expiry=years, discount=0.99, is_call=is_call)
        price = so.Heston().price(TRUTH, contracts) + draws.normal(0.0, 1e-3, len(years))
        columns.append({"strike": strike, "expiry_years": years, "right": "C" if is_call else "P", "price": price})
    frame = pl.concat([pl.DataFrame(own) for own in columns]).with_row_index("id")
    licence = pl.Series("licence", draws.choice(LICENCES, frame.height))
    frame = frame.with_columns(pl.lit("SPX").alias("underlying"), pl.lit("2020-01-01").alias("date"), licence)
    frame.sort("expiry_years", "strike").write_parquet(folder / "0000.parquet")
    return so.scale.Lake(folder)


def _rate(count: int, work: Callable[[], Any]) -> float:
    """Return quotes per second of the processor, of the quickest of some rounds."""
    taken = []
    for _ in range(ROUNDS):
        begin = time.process_time()
        work()
        taken.append(time.process_time() - begin)
    return count / min(taken)


def _steps(given: so.scale.Lake, derived: so.scale.Lake) -> tuple[dict[str, float], dict[str, float | str]]:
    model, name = so.Heston(), given.partitions[0]
    quotes = given.read(name).quotes
    start, count = model.parameters.starts[0], len(quotes)
    in_order = quotes[quotes.contracts.slices.order]
    derived_count = len(derived.read(derived.partitions[0]).quotes)
    plan = Plan(given, ("licence",))
    receipt, parts = states_of(plan, name, given.content(name))
    rates = {
        "read, forwards given": _rate(count, lambda: given.read(name)),
        "read, forwards derived": _rate(derived_count, lambda: derived.read(derived.partitions[0])),
        "moments of quotes in memory": _rate(count, lambda: so.states.moments_of(quotes)),
        "normal equations of quotes in memory, random order": _rate(
            count, lambda: normal_equations_of(_fresh(quotes), model, start)
        ),
        "normal equations of quotes in memory, sorted": _rate(
            count, lambda: normal_equations_of(_fresh(in_order), model, start)
        ),
        "file to moments, forwards given": _rate(count, lambda: so.scale.gather(given, tags="licence", engine="here")),
        "file to moments, forwards derived": _rate(
            derived_count, lambda: so.scale.gather(derived, tags="licence", engine="here")
        ),
    }
    facts: dict[str, float | str] = {
        "bytes of Parquet per quote": Path(given.location(name)).stat().st_size / count,
        "bytes of states per file of four licences": float(len(seal(receipt, parts))),
    }
    return rates, facts


def _fresh(quotes: so.Quotes) -> so.Quotes:
    """Return the same quotes, without what an earlier call has sorted."""
    columns = {name: getattr(quotes, name) for name in ("ids", "observed", "weight", "spread", "labels")}
    return so.Quotes._trusted(contracts=quotes.contracts[slice(None)], **columns)


class Speed(NamedTuple):
    """Quotes per second: if every worker has a core to itself (by processor time), and on the clock as it was."""

    idle: float
    clock: float


def _by_workers(lake: so.scale.Lake, quotes: int) -> dict[int, Speed]:
    """Return speeds by number of processes; starting the processes is counted."""
    speeds = {}
    for count in WORKERS:
        before, begin = _children(), time.perf_counter()
        so.scale.gather(lake, tags="licence", engine=Processes(count))
        clock, used = time.perf_counter() - begin, _children() - before
        speeds[count] = Speed(count * quotes / used, quotes / clock)
    return speeds


def _children() -> float:
    used = getrusage(RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _scaled_up(rates: dict[str, float], measured: dict[str, float | str]) -> dict[str, float | str]:
    """Return what large lakes take, by the formulas of docs/explanation/large-lakes.md."""
    stored = float(measured["bytes of Parquet per quote"])
    states = float(measured["bytes of states per file of four licences"])
    found: dict[str, float | str] = {}
    gathered = rates["file to moments, forwards derived"]
    chains = float(measured["chains of 400 quotes per core-second"])
    for name, quotes in LAKES.items():
        found |= {
            f"{name} quotes, Parquet, GB": quotes * stored / 1e9,
            f"{name} quotes, core-hours from files to moments": quotes / gathered / 3600.0,
            f"{name} quotes, states sent and kept, GB": quotes / PARTITION * states / 1e9,
            f"{name} quotes, core-hours of a fleet": quotes / CHAIN / chains / 3600.0,
        }
    return found


def _millions(rate: float) -> str:
    return f"{rate / 1e6:.2f} million quotes per second"


def _draw(speeds: dict[int, Speed], path: Path) -> None:
    """Draw quotes per second against workers, beside the line of one worker times their number."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    counts = list(speeds)
    figure, axes = plt.subplots(figsize=(6.0, 3.6), layout="constrained")
    axes.plot(counts, [n * speeds[1].idle / 1e6 for n in counts], color="0.7", label="workers times one worker")
    axes.plot(counts, [speeds[n].idle / 1e6 for n in counts], "o-", color="tab:blue", label="a core for each worker")
    axes.set_xlabel("worker processes")
    axes.set_ylabel("million quotes per second")
    axes.set_xticks(counts)
    axes.set_ylim(bottom=0.0)
    axes.set_title("Moments gathered from Parquet files", loc="left")
    axes.legend(frameon=False)
    figure.savefig(path, dpi=150)
    plt.close(figure)
