"""What the RMSE of a book is in: prices through quotes, weighted through moments, and by the weights of one step."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import strikeout as so
from tests.cli.typed import done, told


@pytest.fixture
def book(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    so.write_quotes(so.synthetic.random_quotes(300, maturities=4, seed=1, noise=1e-3), "quotes.csv")
    done("init", "w.book")
    done("import", "w.book", "quotes.csv")
    return "w.book"


def rmse(shown: str) -> str:
    return next(line for line in shown.splitlines() if line.strip().startswith("RMSE"))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--weights", "relative", "--through", "quotes"), " in price, heston"),
        (("--weights", "relative", "--through", "moments"), " in price, weighted (relative), heston"),
        (("--weights", "none", "--through", "moments"), " in price, heston"),
    ],
)
def test_the_rmse_says_whether_it_is_weighted(book, options, said):
    assert rmse(done("calibrate", book, *options).stdout).endswith(said)


@pytest.mark.parametrize("through", ["quotes", "moments"])
def test_a_page_that_shows_the_quotes_has_the_rmse_of_their_prices(book, through):
    found = told("calibrate", book, "--weights", "relative", "--through", through)
    quotes = so.read_quotes("quotes.csv")
    residual = quotes.observed - so.Heston().price(found["parameters"], quotes.contracts)
    price = float(np.sqrt(np.mean(residual**2)))
    assert (found["rmse"] == pytest.approx(price, rel=1e-9)) == (through == "quotes")
    done("report", book, "--out", "page.html")
    assert f"{price:.4g} in price" in Path("page.html").read_text("utf-8")


def test_the_rmse_of_one_step_with_weights_is_not_said_to_be_in_price(book):
    done("calibrate", book, "--weights", "relative", "--through", "quotes")
    names = so.read_quotes("quotes.csv").ids
    taken = done("forget", book, "--ids", names[3], "--tolerance", "0.9", "--yes").stdout
    assert told("status", book)["calibration"]["tolerance"] == 0.9
    assert ", weighted (relative), heston" in rmse(taken)
    assert "in price" not in rmse(taken)
