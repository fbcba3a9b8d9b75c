"""A lake of files: states by loop, processes and Dask, from the cache, without a licence; a fleet of chains."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from resource import RUSAGE_SELF, getrusage
from typing import Any

import numpy as np
import polars as pl

import strikeout as so
from benchmarks.peers.scipy_peer import calibrate as scipy_calibrate
from benchmarks.rows import Result, Row
from strikeout.scale import Here
from strikeout.scale.dask import local
from strikeout.synthetic.heston_quotes import TRUTH

LICENCES = ("L1", "L2", "L3", "L4")
CHAIN = 400  # quotes of a day of one underlying


def run(*, is_quick: bool, is_full: bool) -> Result:
    """Gather, remove and calibrate; with --full a lake of a hundred million quotes."""
    files, size = (4, 20_000) if is_quick else (200, 500_000) if is_full else (12, 200_000)
    with _folder() as folder:
        lake = _lake(folder / "lake", files, size)
        rows, facts = _gather(lake, folder / "cache", files * size, with_dask=not is_full)
        facts |= _peaks(lake)
        fleet, more = _fleet(folder / "chains", 16 if is_quick else 128)
    return Result("lake", is_quick, (*rows, *fleet), facts | more)


@contextmanager
def _folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="strikeout-lake-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def _lake(folder: Path, files: int, size: int) -> so.scale.Lake:
    """Write files of one day each; prices are those of one model, with noise."""
    folder.mkdir()
    for day in range(files):
        draws = np.random.default_rng(day)
        years = draws.choice(np.arange(7.0, 730.0, 7.0) / 365.0, size)
        strike = np.round(100.0 * np.exp(0.15 * draws.normal(size=size) * np.sqrt(years)), 1)
        contracts = so.Contracts(forward=100.0, strike=strike, expiry=years, discount=1.0, is_call=strike > 100.0)
        price = so.Heston().price(TRUTH, contracts) + draws.normal(0.0, 1e-3, size)
        frame = pl.DataFrame({
            "id": np.arange(size),
            "underlying": "SPX",
            "date": str(np.datetime64("2020-01-01") + day),
            "licence": draws.choice(LICENCES, size),
            "strike": strike,
            "expiry_years": years,
            "right": np.where(strike > 100.0, "C", "P"),
            "price": price,
            "forward": 100.0,
            "discount": 1.0,
        })  # fmt: skip
        frame.write_parquet(folder / f"{day:04}.parquet")
    return so.scale.Lake(folder)


def _timed(work: Callable[[], Any]) -> tuple[Any, float, float]:
    """Return the answer, and seconds of the processor and of the clock."""
    cpu, clock = time.process_time(), time.perf_counter()
    found = work()
    return found, time.process_time() - cpu, time.perf_counter() - clock


def _gather(
    lake: so.scale.Lake, cache: Path, quotes: int, *, with_dask: bool
) -> tuple[list[Row], dict[str, float | str]]:
    task = f"states of {quotes:,} quotes in {len(lake.partitions)} files by licence"
    loop, cpu, clock = _timed(lambda: so.scale.gather(lake, tags="licence", engine="here", cache=cache))
    rows = [Row(task, "a loop in this process", cpu, 1.0, note=f"{quotes / cpu / 1e6:.2f} million quotes per second")]
    again, second, _ = _timed(lambda: so.scale.gather(lake, tags="licence", engine="here", cache=cache))
    rows.append(Row(task, "a second run, from the cache", second, second / cpu, note=_same(again, loop)))
    two, _, together = _timed(lambda: so.scale.gather(lake, tags="licence", engine=2))
    rows.append(Row(task, "two processes, by the clock", together, together / clock, note=_same(two, loop)))
    if with_dask:
        rows += _dask(task, lake, loop, cpu)
    facts: dict[str, float | str] = {"times a second run is faster": cpu / second}
    removal, by_tag, _ = _timed(lambda: loop.without(licence="L3").total())
    rebuilt, from_files, _ = _timed(lambda: _rebuilt(lake))
    equal = "the same bits" if removal == rebuilt else "DIFFERENT BITS"
    what = "a licence struck out"
    rows += [
        Row(what, "by its tag", by_tag, 1.0, note=equal),
        Row(what, "rebuilt from the files of the others", from_files, from_files / by_tag, 500.0),
    ]
    least = Row(
        task, "fifty times the second run", 50.0 * second, cpu / (50.0 * second), 1.0, note="the least of a loop"
    )
    rows.append(least)
    facts["peak memory of this process, MB"] = round(getrusage(RUSAGE_SELF).ru_maxrss / 1e3)
    calibration, solve, _ = _timed(lambda: so.calibrate(loop, so.Heston()))
    facts["calibration from the states, seconds"] = solve
    facts["converged"] = str(calibration.converged)
    return rows, facts


PEAK = """
import sys
from pathlib import Path
from strikeout.scale import Lake, Processes, gather
if __name__ == "__main__":
    gathered = gather(Lake(sys.argv[1]), tags="licence", engine=Processes(2))
    gathered.without(licence="L3").total()
    # Not ru_maxrss, which a new process inherits from the one that started it.
    print(next(line.split()[1] for line in Path("/proc/self/status").read_text().splitlines() if "VmHWM" in line))
"""


def _peaks(lake: so.scale.Lake) -> dict[str, float | str]:
    """Return the peak memory of a driver, in a process of its own, of a quarter of the files and of all."""
    folder, found = Path(lake.path).parent / "peak", {}
    folder.mkdir()
    script = folder / "peak.py"
    script.write_text(PEAK)
    for count in (len(lake.partitions) // 4, len(lake.partitions)):
        part = folder / str(count)
        part.mkdir()
        for name in lake.partitions[:count]:
            (part / name).symlink_to(lake.location(name))
        done = subprocess.run([sys.executable, script, part], check=True, capture_output=True, text=True)
        found[f"peak memory of a driver of {count} files, MB"] = round(int(done.stdout) / 1e3)
    return found


def _same(found: so.scale.Gathered, loop: so.scale.Gathered) -> str:
    return "the same bits" if found.digest() == loop.digest() else "DIFFERENT BITS"


def _rebuilt(lake: so.scale.Lake) -> so.states.Moments:
    parts = []
    for partition in lake.partitions:
        quotes = lake.read(partition).quotes
        parts.append(so.states.moments_of(quotes[quotes.labels["licence"] != "L3"]))
    return so.states.Moments.total(parts)


def _dask(task: str, lake: so.scale.Lake, loop: so.scale.Gathered, cpu: float) -> list[Row]:
    """One worker, by the processor time of its process; warmed up before."""
    import psutil

    with local(1) as engine:
        so.scale.gather(so.scale.Lake(Path(lake.path) / lake.partitions[0]), engine=engine)
        worker = psutil.Process(next(iter(engine.client.cluster.workers.values())).pid)
        used = worker.cpu_times()
        found = so.scale.gather(lake, tags="licence", engine=engine)
        now = worker.cpu_times()
    taken = now.user + now.system - used.user - used.system
    return [
        Row(task, "Dask, one worker", taken, taken / cpu, note=_same(found, loop)),
        Row(task, "1.15 times the loop", 1.15 * cpu, 1.15 * cpu / taken, 1.0, note="the most Dask's worker may take"),
    ]


def _fleet(folder: Path, count: int) -> tuple[list[Row], dict[str, float | str]]:
    folder.mkdir()
    frames = []
    for place in range(count):
        draws = np.random.default_rng(place)
        years = np.repeat(np.array([14.0, 30.0, 60.0, 91.0, 182.0, 273.0, 365.0, 730.0]) / 365.0, CHAIN // 8)
        strike = 100.0 * np.exp(np.tile(np.linspace(-2.0, 2.0, CHAIN // 8), 8) * 0.2 * np.sqrt(years))
        contracts = so.Contracts(forward=100.0, strike=strike, expiry=years, discount=1.0, is_call=strike > 100.0)
        truth = np.array([*TRUTH.values()]) * draws.uniform(0.8, 1.2, len(TRUTH))
        price = so.Heston().price(truth, contracts) + draws.normal(0.0, 1e-3, CHAIN)
        frames.append(
            pl.DataFrame(
                {
                    "underlying": f"U{place:04}",
                    "date": "2024-03-01",
                    "strike": strike,
                    "expiry_years": years,
                    "right": np.where(strike > 100.0, "C", "P"),
                    "price": price,
                    "forward": 100.0,
                    "discount": 1.0,
                }
            )
        )
    pl.concat(frames).write_parquet(folder / "chains.parquet")
    lake = so.scale.Lake(folder)
    out = folder.parent / "fits.parquet"
    found, cpu, _ = _timed(lambda: so.scale.calibrate_many(lake, so.Heston(), out=out, engine=Here()))
    quotes = lake.read("chains.parquet").quotes
    some = [quotes[quotes.labels["underlying"] == f"U{place:04}"] for place in range(min(count, 4))]
    start = so.Heston().parameters.starts[0]
    _, peer, _ = _timed(lambda: [scipy_calibrate(q.contracts, q.observed, start, method="trf") for q in some])
    task = f"{count} chains of {CHAIN} quotes read, calibrated and written, each"
    each, other = cpu / count, peer / len(some)
    done = sum(fit.converged for fit in found.fits)
    rows = [
        Row(task, "calibrate_many", each, 1.0, note=f"{1.0 / each:.0f} per core-second, four starts; {done} converged"),
        Row(task, "SciPy over NumPy, one start", other, other / each, 5.0, note="reading and writing not counted"),
    ]
    return rows, {"chains per core-second": round(1.0 / each)}
