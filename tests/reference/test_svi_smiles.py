"""Raw SVI on real days: every smile converges, as near to the quotes as desks expect."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import strikeout as so


@pytest.fixture(scope="module", params=["2022-06-10", "2023-06-09"])
def day(request, shared_data) -> so.results.Calibration:
    quotes = so.inspect_quotes(shared_data(f"chains/day_cboe_spx_{request.param}.parquet"), checks="desk").quotes
    return so.calibrate(quotes, so.SVI())


def test_every_smile_of_a_real_day_converges_within_tenths_of_a_volatility_point(day):
    """Half of them within 0.15 points; the worst, a week with two settlements at one date, within one."""
    assert day.converged
    assert all(start.evaluations > 0 for start in day.starts)
    points = np.array([error.vol_points for error in day.fit_errors.by_expiry.values()])
    assert len(points) > 30
    assert np.median(points) < 0.15
    assert np.sort(points)[-2] < 0.45
    assert points.max() < 1.0


def test_smiles_are_rows_with_dates_letters_and_errors(day):
    smiles = day.to_dict()["smiles"]
    assert [smile["expiry"] for smile in smiles] == sorted(day.fit_errors.by_expiry)
    first, letters = smiles[0], next(iter(day.model.raw(day.parameters, day.quotes.contracts).values()))
    assert {name: first[name] for name in letters} == letters
    assert first["vol_points"] == pytest.approx(day.fit_errors.by_expiry[first["expiry"]].vol_points, rel=1e-12)


def test_a_smile_alone_is_the_smile_of_the_day(day):
    """Smiles share nothing, so that other expiries do not affect a bit."""
    date = sorted(day.fit_errors.by_expiry)[20]
    quotes = day.quotes
    alone = so.calibrate(quotes[quotes.labels["expiry_date"] == date], so.SVI())
    assert alone.parameters.items() <= day.parameters.items()


def test_smiles_of_several_dates_with_one_time_to_expiry_are_reported():
    quotes = so.paper.quotes("large")
    dates = np.where(np.arange(len(quotes)) % 2, "2024-01-01", "2024-02-01")
    found = so.calibrate(replace(quotes, labels={**quotes.labels, "expiry_date": dates}), so.SVI(), starts=1)
    assert all(smile["expiry"] == "2024-01-01 and 2024-02-01" for smile in found.to_dict()["smiles"])
    assert any("pool quotes of several dates" in sentence for sentence in found.warnings)
