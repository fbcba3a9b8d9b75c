"""An attacker writes Python into a date or another label, and wants it run with the exported model."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import strikeout as so
from strikeout.book.export import as_quantlib
from strikeout.errors import UsageError
from tests.cli.typed import done, run

EVIL = "2024-12-31\n__import__('os').system('touch PWNED'),  # "
STUB = """
import sys
class Anything:
    def __getattr__(self, name): return Anything()
    def __call__(self, *given): return Anything()
sys.modules[__name__] = Anything()
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "stub").mkdir()
    (tmp_path / "stub" / "QuantLib.py").write_text(STUB)
    return tmp_path


def ran(folder, script) -> bool:
    """Whether running the exported script left the attacker's mark."""
    ended = subprocess.run([sys.executable, script], cwd=folder, env={**os.environ, "PYTHONPATH": "stub"}, check=False)
    assert ended.returncode == 0
    return (folder / "PWNED").exists()


def dated(quotes, dates):
    """The frame of these quotes with other dates, as a vendor would send it."""
    return quotes.to_frame().with_columns(pl.Series("quote_date", dates))


def test_a_date_cell_with_code_is_quarantined_and_never_reaches_the_export(folder):
    quotes = so.synthetic.panel_quotes(4, seed=3)
    days = quotes.labels["date"].tolist()
    dated(quotes, [EVIL if day == max(days) else day for day in days]).write_csv("vendor.csv")
    done("init", "x.book")
    assert run("import", "x.book", "vendor.csv").exit_code == 2  # a quarter of the rows
    done("import", "x.book", "vendor.csv", "--max-reject", "0.5", "--quarantine", "bad.csv")
    done("calibrate", "x.book")
    done("export", "x.book", "model.py")
    assert "__import__" not in (folder / "model.py").read_text()
    assert not ran(folder, "model.py")
    bad = pl.read_csv("bad.csv")
    assert (set(bad["quarantine_code"]), bad.height) == ({"Q110"}, 15)


def test_a_group_that_is_no_date_is_not_named_in_the_export(folder):
    quotes = so.synthetic.panel_quotes(4, seed=3)
    desks = np.where(quotes.labels["date"] == max(quotes.labels["date"]), "z" + EVIL, "a")
    made = so.Quotes(ids=quotes.ids, contracts=quotes.contracts, observed=quotes.observed, labels={"desk": desks})
    with so.Book.create("x.book") as book:
        book.import_quotes(made)
        book.calibrate(panel="desk")
        book.export("model.py")
    assert "__import__" not in (folder / "model.py").read_text()
    assert not ran(folder, "model.py")


@pytest.fixture(scope="module")
def version(tmp_path_factory):
    with so.Book.create(tmp_path_factory.mktemp("book") / "a.book") as book:
        book.import_quotes(so.synthetic.panel_quotes(3, seed=1))
        return book.calibrate().after


@given(groups=st.lists(st.text(), min_size=1, max_size=3, unique=True))
def test_whatever_the_groups_are_called_the_export_is_the_same_program(version, groups):
    known = as_quantlib(version, book="00ff", is_current=True)
    latent = dict(zip(groups, [*version.latent.values()][-len(groups) :], strict=True))
    assert ast.dump(ast.parse(as_quantlib(replace(version, latent=latent), book="00ff", is_current=True))) == ast.dump(
        ast.parse(known)
    )


def test_a_last_day_that_is_a_date_is_named(version):
    assert f"# initial variance of {max(version.latent)}, v0" in as_quantlib(version, book="00ff", is_current=True)


@pytest.mark.parametrize("date", ["x", EVIL, "2024-13-01", "01/02/2024", "20240102", "2024-W05-3", "2024-01-02 "])
def test_python_refuses_a_date_label_that_is_no_date(date):
    quotes = so.paper.quotes("small", seed=1)[:2]
    with pytest.raises(UsageError) as error:
        so.Quotes(
            ids=quotes.ids, contracts=quotes.contracts, observed=quotes.observed, labels={"date": ["2024-01-02", date]}
        )
    assert (error.value.label, error.value.row) == ("date", 1)


@pytest.mark.parametrize("dates", [[20240102, 20240103], [1.0, 2.0], [True, False]])
def test_python_refuses_numbers_as_dates(dates):
    quotes = so.paper.quotes("small", seed=1)[:2]
    with pytest.raises(UsageError):
        so.Quotes(ids=quotes.ids, contracts=quotes.contracts, observed=quotes.observed, labels={"date": dates})


@pytest.mark.parametrize(
    "dates", [["2024-01-02", ""], np.array(["2024-01-02", "NaT"], "datetime64[D]"), ["2024-02-29", "1999-12-31"]]
)
def test_dates_and_unknown_dates_stay(dates):
    quotes = so.paper.quotes("small", seed=1)[:2]
    made = so.Quotes(ids=quotes.ids, contracts=quotes.contracts, observed=quotes.observed, labels={"date": dates})
    assert made.labels["date"].tolist() == np.asarray(dates).tolist()


@pytest.mark.parametrize("cell", ["2024-01-02", "20240102", "2024-01-02T15:45:00", ""])
def test_a_date_that_the_price_does_not_need_is_read_like_one_that_it_does(folder, cell):
    (folder / "a.csv").write_text(
        f"date,strike,right,price,expiry_years,forward,discount\n{cell},100,C,5,0.5,100,1\n2024-01-02,90,C,12,0.5,100,1"
    )
    assert so.read_quotes("a.csv").labels["date"].tolist() == ["2024-01-02" if cell else "", "2024-01-02"]
