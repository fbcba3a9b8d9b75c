"""A fleet over a lake: the bits of each book, a table that a second run continues, failures as rows."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest

import strikeout as so
from strikeout.errors import UsageError
from strikeout.scale import Processes
from tests.scale.conftest import DAYS

HESTON = so.Heston()


@pytest.fixture(scope="module")
def fleet(lake):
    return so.scale.calibrate_many(lake, HESTON, engine="here")


def test_every_row_has_the_bits_of_its_own_calibration(fleet, days):
    for fit, quotes in zip(fleet.fits, days, strict=True):
        alone = so.calibrate(quotes, HESTON)
        assert fit.parameters == alone.parameters
        assert fit.standard_errors == alone.standard_errors
        assert fit.digest == alone.state.digest()


def test_processes_give_the_same_table(fleet, lake, days):
    assert so.scale.calibrate_many(lake, HESTON, engine=Processes(2)).digest() == fleet.digest()
    first, second = days[:2]
    several = so.scale.calibrate_many(first, HESTON, by=["underlying", "date"], engine=2)
    assert several.fits[0].parameters == fleet.fits[0].parameters
    assert several.fits[0].calibration is None
    assert len(so.scale.calibrate_many(second, HESTON, by="date").fits) == 1


def test_a_table_is_continued(lake, days, tmp_path, fleet):
    out = tmp_path / "fits.parquet"
    first = so.scale.calibrate_many(lake, HESTON, out=out, engine="here")
    assert (first.reused, first.digest()) == (0, fleet.digest())
    again = so.scale.calibrate_many(lake, HESTON, out=out, engine="here")
    assert (again.reused, again.digest()) == (len(days), fleet.digest())
    table = pl.read_parquet(out)
    assert table["date"].to_list() == list(DAYS)
    assert table["mean_reversion"].to_list() == [fit.parameters["mean_reversion"] for fit in fleet.fits]
    other = so.scale.calibrate_many(lake, HESTON, out=out, engine="here", starts=1)
    assert other.reused == 0
    assert list(tmp_path.iterdir()) == [out]


def test_a_killed_run_is_continued_with_the_same_digest(lake, tmp_path, fleet):
    out = tmp_path / "fits.parquet"
    program = (
        "import sys, strikeout as so\n"
        "so.scale.calibrate_many(so.scale.Lake(sys.argv[1]), so.Heston(), out=sys.argv[2], engine='here')\n"
    )
    running = subprocess.Popen([sys.executable, "-c", program, str(lake.path), str(out)])
    unfinished = Path(f"{out}.unfinished")
    limit = time.monotonic() + 60.0
    while not list(unfinished.glob("*.parquet")) and not out.exists() and time.monotonic() < limit:
        time.sleep(0.001)
    os.kill(running.pid, signal.SIGKILL)
    running.wait()
    assert out.exists() or list(unfinished.glob("*.parquet"))
    found = so.scale.calibrate_many(lake, HESTON, out=out, engine="here")
    assert found.reused >= 1
    assert found.digest() == fleet.digest()
    assert not unfinished.exists()


def test_a_file_that_cannot_be_read_is_a_row(days, tmp_path):
    so.write_quotes(days[0], tmp_path / "a.parquet")
    (tmp_path / "b.parquet").write_bytes(b"no quotes")
    found = so.scale.calibrate_many(so.scale.Lake(tmp_path), HESTON, engine="here")
    assert [fit.partition for fit in found.fits] == ["b.parquet", "a.parquet"]
    assert (found.fits[0].ended, found.fits[1].converged, found.converged) == ("unreadable-file", True, False)


def test_out_is_for_lakes_and_not_for_another_file(days, lake, tmp_path):
    with pytest.raises(UsageError):
        so.scale.calibrate_many(days[0], HESTON, out=tmp_path / "fits.parquet")
    so.write_quotes(days[0], tmp_path / "quotes.parquet")
    with pytest.raises(UsageError):
        so.scale.calibrate_many(lake, HESTON, out=tmp_path / "quotes.parquet", engine="here")
    assert len(so.read_quotes(tmp_path / "quotes.parquet")) == len(days[0])
