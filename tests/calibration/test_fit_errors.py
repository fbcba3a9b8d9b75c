"""Fit errors in volatility points, spreads and price, and a calibration quote by quote."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import strikeout as so
from strikeout.kernels import black
from strikeout.paper import quotes as paper_quotes
from strikeout.synthetic.sample_files import write_sample


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    path = write_sample(tmp_path_factory.mktemp("fit") / "page.csv", "page")
    return so.inspect_quotes(path).quotes


@pytest.fixture(scope="module")
def fitted(page):
    return so.calibrate(page, so.Heston(), select="otm")


def test_the_errors_are_root_mean_squares_of_the_rows_of_the_frame(fitted):
    frame, errors = fitted.to_frame(), fitted.fit_errors
    assert len(frame) == errors.overall.count == fitted.count
    assert errors.overall.price == pytest.approx(fitted.rmse, rel=1e-12)
    points = 100 * frame["vol_residual"].to_numpy()
    assert errors.overall.vol_points == pytest.approx(np.sqrt(np.nanmean(points**2)), rel=1e-12)
    spreads = (frame["residual"] / frame["spread"]).to_numpy()
    assert errors.overall.spreads == pytest.approx(np.sqrt(np.mean(spreads**2)), rel=1e-12)


def test_errors_by_expiry_add_up_to_the_error_of_all(fitted):
    errors = fitted.fit_errors
    squares = sum(error.count * error.price**2 for error in errors.by_expiry.values())
    assert squares / fitted.count == pytest.approx(errors.overall.price**2, rel=1e-12)
    assert list(errors.by_expiry) == sorted(set(fitted.used.labels["expiry_date"].tolist()))


def test_the_model_volatility_gives_the_model_price(fitted):
    frame, c = fitted.to_frame("pandas"), fitted.used.contracts
    price = black.price(c.forward, c.strike, c.expiry, frame["model_vol"].to_numpy(), c.discount, c.is_call)
    assert np.nanmax(np.abs(price - frame["model"].to_numpy())) < 1e-8 * c.forward.max()


@pytest.mark.parametrize(("library", "kind"), [("polars", "DataFrame"), ("pandas", "DataFrame"), ("pyarrow", "Table")])
def test_a_frame_of_every_library(fitted, library, kind):
    frame = fitted.to_frame(library)
    assert type(frame).__name__ == kind
    assert type(frame).__module__.startswith(library)


def test_another_library_is_refused(fitted):
    with pytest.raises(so.errors.StrikeoutError) as refused:
        fitted.to_frame("excel")
    assert refused.value.library == "excel"


def test_a_panel_has_the_same_measures():
    panel = so.calibrate(paper_quotes("small"), so.Heston(), panel="date")
    frame = panel.to_frame()
    assert np.sqrt(np.mean(frame["residual"].to_numpy() ** 2)) == pytest.approx(panel.rmse, rel=1e-9)
    assert panel.to_dict()["fit_errors"]["count"] == panel.count


def test_influence_makes_a_pandas_frame(fitted):
    found = so.influence(fitted)
    frame = pd.DataFrame(found)
    assert len(frame) == found.rows
    assert list(frame.columns) == list(found)


def test_models_are_ranked_by_the_measure_that_is_shown(page):
    found = so.compare_models(page, ["heston", "black-scholes", "term-structure"], select="otm")
    for measure in ("vol_points", "spreads", "rmse"):
        ranked = found.ranked(measure)
        figures = [getattr(fit, measure) for fit in ranked.values() if fit.converged]
        assert figures == sorted(figures)
        assert ranked.to_dict()["ranked_by"] == measure
    with pytest.raises(so.errors.StrikeoutError) as refused:
        found.ranked("beauty")
    assert refused.value.by == "beauty"


def test_vol_spread_residuals_are_volatilities_over_the_spread_in_volatility(page):
    how = {"residual": "implied_vol", "weights": "vol-spread", "select": "otm"}
    found = so.calibrate(page, so.Heston(), **how)
    frame, c = found.to_frame("pandas"), found.used.contracts
    vega = black.vega(c.forward, c.strike, c.expiry, frame["market_vol"].to_numpy(), c.discount)
    residual = frame["vol_residual"] / (frame["spread"] / vega)
    assert found.cost == pytest.approx(float(np.sum(residual**2)), rel=1e-6)
    plain = so.calibrate(page, so.Heston(), residual="implied_vol", weights="none", select="otm")
    assert found.parameters != plain.parameters


def test_vol_spread_with_price_residuals_is_refused(page):
    with pytest.raises(so.errors.StrikeoutError) as refused:
        so.calibrate(page, so.Heston(), weights="vol-spread")
    assert (refused.value.code, refused.value.weights) == ("usage", "vol-spread")


def test_a_strike_out_under_vol_spread_is_certified_and_verified(page):
    how = {"residual": "implied_vol", "weights": "vol-spread", "select": "otm"}
    found = so.calibrate(page, so.Heston(), **how)
    done = so.forget(found, ids=found.quotes.ids[:3])
    retained = found.book.without(done.ids)
    assert so.verify(done.certificate, retained)
    assert not so.verify(done.certificate, found.book)


def test_more_starts_than_the_model_has_are_refused(page):
    with pytest.raises(so.errors.StrikeoutError) as refused:
        so.calibrate(page, so.Heston(), starts=10)
    assert (refused.value.starts, refused.value.most) == (10, 4)
