"""Quotes struck out of a whole fleet, and what is kept of it erased."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

import strikeout as so
from strikeout.assurance.certificate import Certificate
from strikeout.cli import strikeout
from strikeout.errors import NothingMeantError
from strikeout.scale import erase_kept, forget_many, search_lake
from tests.scale.conftest import DAYS, day_of_quotes


@pytest.fixture
def folder(tmp_path, days):
    place = tmp_path / "lake"
    place.mkdir()
    for date, quotes in zip(DAYS[:2], days, strict=False):
        so.write_quotes(quotes, place / f"{date}.parquet")
    return place


def test_every_book_is_as_if_the_licence_had_never_been_seen(folder, days, tmp_path):
    done = forget_many(
        so.scale.Lake(folder), so.Heston(), where="licence = 'L3'", certificates=tmp_path / "proofs", engine="here"
    )
    assert [row.group for row in done.rows] == [("SPX", date) for date in DAYS[:2]]
    assert (done.books, done.is_done) == (2, True)
    for row, quotes in zip(done.rows, days, strict=False):
        retained = quotes[quotes.labels["licence"] != "L3"]
        never_seen = so.calibrate(retained, so.Heston())
        assert dict(row.after) == dict(never_seen.parameters)
        assert row.digest == never_seen.state.digest()
        written = Certificate.from_bytes((tmp_path / "proofs" / row.certificate_file).read_bytes())
        assert so.verify(written, retained).holds
        assert not so.verify(written, quotes).holds


def test_the_engine_changes_no_bit(folder):
    lake, how = so.scale.Lake(folder), {"where": "strike > 110"}
    assert (
        forget_many(lake, so.Heston(), engine=2, **how).digest()
        == forget_many(lake, so.Heston(), engine="here", **how).digest()
    )


def test_a_book_that_loses_all_its_quotes_is_a_row_with_its_error(folder):
    done = forget_many(so.scale.Lake(folder), so.Heston(), where=f"date = '{DAYS[0]}'", engine="here")
    (row,) = done.rows
    assert not done.is_done
    assert row.code
    assert done.removed == 0


def test_a_condition_without_a_match_is_refused(folder):
    with pytest.raises(NothingMeantError):
        forget_many(so.scale.Lake(folder), so.Heston(), where="licence = 'L9'", engine="here")


def test_quotes_in_memory_are_struck_out_by_label():
    both = [day_of_quotes(DAYS[0], 1), day_of_quotes(DAYS[0], 2, underlying="NDX")]
    quotes = so.Quotes(
        ids=np.concatenate([one.ids for one in both]),
        contracts=so.Contracts(
            **{
                name: np.concatenate([getattr(one.contracts, name) for one in both])
                for name in ("forward", "strike", "expiry", "discount", "is_call")
            }
        ),
        observed=np.concatenate([one.observed for one in both]),
        labels={name: np.concatenate([one.labels[name] for one in both]) for name in both[0].labels},
    )
    done = forget_many(quotes, so.Heston(), where="underlying = 'NDX' and strike > 110")
    assert [row.group for row in done.rows] == [("NDX",)]
    assert done.books == 2


def test_what_is_kept_of_erased_quotes_is_removed_and_nothing_else(folder, days, tmp_path):
    lake, cache, fits, proofs = (
        so.scale.Lake(folder),
        tmp_path / "cache",
        tmp_path / "fits.parquet",
        tmp_path / "proofs",
    )
    so.scale.gather(lake, cache=cache, engine="here")
    so.scale.calibrate_many(lake, so.Heston(), out=fits, engine="here")
    forget_many(lake, so.Heston(), where="strike > 110", certificates=proofs, engine="here")
    erased = days[0][:3]
    so.write_quotes(days[0][3:], folder / f"{DAYS[0]}.parquet")  # the owner's own deletion
    done = erase_kept(so.scale.Lake(folder), erased, cache=str(cache), fits=str(fits), certificates=str(proofs))
    assert (done.states, done.rows, done.certificates) == (1, 1, 1)
    assert [Path(one).name for one in pl.read_parquet(fits)["partition"]] == [f"{DAYS[1]}.parquet"]
    assert search_lake(so.scale.Lake(folder), erased, cache=str(cache)).is_clean
    again = so.scale.calibrate_many(so.scale.Lake(folder), so.Heston(), out=fits, engine="here")
    assert again.reused == 1


def test_the_commands_strike_out_and_erase(folder, days, tmp_path):
    words = ["scale", "forget", str(folder), "--where", "licence = 'L3'", "--certificates", str(tmp_path / "proofs")]
    done = CliRunner().invoke(strikeout, [*words, "--engine", "here", "--json"])
    assert done.exit_code == 0, done.stderr
    shown = json.loads(done.stdout)
    assert {(tmp_path / "proofs" / row["certificate"]).is_file() for row in shown["rows"]} == {True}
    assert CliRunner().invoke(strikeout, ["scale", "forget", str(folder)]).exit_code == 2
    listed = tmp_path / "erased.csv"
    so.write_quotes(days[0][:3], listed)
    words = [
        "scale",
        "erase",
        str(folder),
        "--erased",
        str(listed),
        "--certificates",
        str(tmp_path / "proofs"),
        "--json",
    ]
    gone = CliRunner().invoke(strikeout, words)
    assert gone.exit_code == 0, gone.stderr
    assert json.loads(gone.stdout) == {"states": 0, "rows": 0, "certificates": 1}
