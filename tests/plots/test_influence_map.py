"""The map shows every date and expiry where it belongs, and a bad one stands out."""

from __future__ import annotations

import numpy as np
import pytest

import strikeout as so
from strikeout.assurance.influence import influence
from strikeout.calibration.fit_errors import expiry_names
from strikeout.errors import UsageError
from strikeout.kernels import black
from strikeout.plots.influence_map import influence_map, plot_influence_map
from strikeout.plots.style import View
from strikeout.plots.writing import write_plot
from tests.raising import raises


@pytest.fixture(scope="module")
def shifted():
    """The 60-day quotes of one day have their decimal point in the wrong place."""
    book = so.paper.quotes("small", seed=2)
    bad = (book.labels["day"] == 40) & (book.labels["expiry_days"] == 60)
    return so.calibrate(book.with_observed(np.where(bad, 0.1 * book.observed, book.observed)), so.Heston()), bad


def test_every_cell_is_the_cooks_distance_of_its_date_and_expiry(shifted):
    calibration, _ = shifted
    found, groups = influence_map(calibration), influence(calibration, ["date", "expiry"])
    assert found.distance.shape == (2, 90)
    expiries = np.unique(calibration.quotes.contracts.expiry).tolist()
    for date, expiry, distance in zip(groups["date"], groups["expiry"], groups["cooks_d"], strict=True):
        cell = found.distance[expiries.index(expiry), found.columns.index(date)]
        assert cell == pytest.approx(distance, rel=1e-9)


def test_a_view_has_the_cells_of_its_dates_and_expiries_alone(shifted):
    calibration, _ = shifted
    whole = influence_map(calibration)
    names, place = expiry_names(calibration.quotes)
    part = influence_map(calibration, view=View((names[0], names[-1])))
    dates = calibration.quotes.labels["date"][np.isin(place, [0, len(names) - 1])].astype(str)
    assert list(part.columns) == sorted(set(dates.tolist()))
    for column, distance in zip(part.columns, np.nanmax(part.distance, axis=0), strict=True):
        assert np.isclose(whole.distance[:, whole.columns.index(column)], distance, rtol=1e-9).any()
    day = influence_map(calibration, view=View(date=whole.columns[3]))
    assert day.across.edges  # a single day is mapped by moneyness
    assert day.distance.shape[0] == 2
    with pytest.raises(UsageError):
        influence_map(calibration, view=View(date="1999-01-01"))


def test_a_bad_day_is_the_largest_and_named_in_the_title(shifted):
    calibration, bad = shifted
    date, expiry = influence_map(calibration).largest()
    assert date == calibration.quotes.labels["date"][bad][0]
    assert expiry == f"{60 / 252 * 365:.0f} days"
    text = "\n".join(text.get_text() for text in plot_influence_map(calibration).texts)
    assert date in text
    assert expiry in text


def test_many_expiries_are_put_in_buckets_of_fixed_edges():
    book = so.synthetic.random_quotes(400, maturities=40, seed=3)
    labelled = so.Quotes(
        ids=book.ids,
        contracts=book.contracts,
        observed=book.observed,
        labels={"date": np.where(np.arange(400) < 200, "2025-01-02", "2025-01-03")},
    )
    found = influence_map(so.calibrate(labelled, so.Heston()))
    assert found.expiries == ("to 1m", "to 2m", "to 3m", "to 6m", "to 1y", "to 2y")
    assert found.columns == ("2025-01-02", "2025-01-03")


def test_a_cell_without_quotes_is_empty_and_one_that_all_hangs_on_is_crossed():
    book = so.paper.quotes("small", seed=4)
    early = book.labels["day"] < 45
    long = book.labels["expiry_days"] == 60
    labelled = so.Quotes(
        ids=book.ids, contracts=book.contracts, observed=book.observed, labels={"half": np.where(early, "a", "b")}
    )[early | ~long]  # the second half quotes the short expiry alone
    found = influence_map(so.calibrate(labelled, so.Heston()), by="half")
    assert np.isnan(found.distance[1, 1])
    assert np.isinf(found.distance[1, 0])
    figure = plot_influence_map(so.calibrate(labelled, so.Heston()), by="half")
    crosses = [line for axes in figure.axes for line in axes.lines if line.get_marker() == "x"]
    assert [line.get_xydata().tolist() for line in crosses] == [[[0.0, 1.0]]]


def test_the_file_is_a_picture_of_the_kind_its_name_says(shifted, tmp_path):
    calibration, _ = shifted
    png = write_plot(calibration, tmp_path / "map.png", "influence").read_bytes()
    svg = write_plot(calibration, tmp_path / "map.svg", "influence").read_bytes()
    assert png.startswith(b"\x89PNG")
    assert b"<svg" in svg
    assert svg == write_plot(calibration, tmp_path / "again.svg", "influence").read_bytes()
    with pytest.raises(UsageError, match=r"ends in \.png, \.svg, \.pdf"):
        write_plot(calibration, tmp_path / "map.gif", "influence")


def test_quotes_without_the_label_are_refused_by_its_name():
    with raises(UsageError, label="date"):
        influence_map(so.calibrate(so.synthetic.random_quotes(100, maturities=4), so.Heston()), by="date")


def test_a_single_day_is_mapped_by_moneyness_in_standard_deviations():
    book = so.synthetic.random_quotes(300, maturities=4, seed=6)
    bad = int(np.argmax(book.contracts.log_moneyness))
    spoilt = book.with_observed(np.where(np.arange(300) == bad, 3.0 * book.observed + 1.0, book.observed))
    calibration = so.calibrate(spoilt, so.Heston())
    found = influence_map(calibration)
    assert found.across.label.startswith("ln(strike / forward), standard deviations")
    column, expiry = found.largest()
    at_the_money = so.Contracts(forward=1.0, strike=1.0, expiry=book.contracts.expiry[bad], discount=1.0, is_call=True)
    price = calibration.model.price(calibration.parameters, at_the_money)
    deviation = black.implied_volatility(price, 1.0, 1.0, at_the_money.expiry, 1.0, True) * np.sqrt(at_the_money.expiry)
    low, high = map(float, column.split(" to "))
    assert low <= book.contracts.log_moneyness[bad] / deviation[0] < high
    assert expiry == f"{book.contracts.expiry[bad] * 365:.0f} days" or "years" in expiry


def test_the_numbers_of_a_map_are_plain_and_say_what_all_hangs_on():
    book = so.paper.quotes("small", seed=4)
    found = influence_map(so.calibrate(book, so.Heston()), by="expiry_days").to_dict()
    assert found["columns"] == ["30", "60"]
    # Each expiry is one cell, nothing is quoted beside it, and without it the other alone determines nothing.
    assert found["cooks_distance"] == [["all", None], [None, "all"]]
