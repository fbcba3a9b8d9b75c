"""A picture names what it shows, and shows what it is asked for."""

from __future__ import annotations

import numpy as np
import pytest

import strikeout as so
from strikeout.paper import quotes as paper_quotes
from strikeout.plots import View, plot, plot_data
from strikeout.plots.style import caption
from strikeout.synthetic.sample_files import write_sample


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    page = write_sample(tmp_path_factory.mktemp("view") / "page.csv", "page")
    return so.calibrate(so.inspect_quotes(page).quotes, so.Heston(), select="otm")


def test_a_caption_names_underlying_dates_file_objective_and_fit_error(fitted):
    line = caption(fitted, View(source="page.csv"))
    labels = fitted.used.labels
    for part in (str(labels["date"][0]), "page.csv", "price residuals", fitted.fit_errors.sentence):
        assert part in line
    if "underlying" in labels:
        assert str(labels["underlying"][0]) in line


@pytest.mark.parametrize("kind", ["smiles", "residuals", "variance", "influence"])
def test_every_picture_carries_its_caption(fitted, kind):
    figure = plot(fitted, kind, view=View(source="page.csv"))
    shown = " ".join(" ".join(text.get_text().split()) for text in figure.texts)
    assert "page.csv" in shown
    assert plot_data(fitted, kind, view=View(source="page.csv"))["caption"] in shown


def test_the_chosen_expiries_are_shown_and_no_others(fitted):
    dates = sorted(set(fitted.used.labels["expiry_date"].tolist()))[:2]
    view = View(expiries=tuple(dates))
    assert [panel["title"][:10] for panel in plot_data(fitted, "smiles", view=view)["panels"]] == dates
    assert plot_data(fitted, "residuals", view=view)["expiries"] == dates


def test_an_expiry_that_no_quote_has_is_refused(fitted):
    with pytest.raises(so.errors.StrikeoutError) as refused:
        plot(fitted, "smiles", view=View(expiries=("1999-01-01",)))
    assert refused.value.missing == ["1999-01-01"]


def test_a_date_of_a_panel_is_shown_instead_of_the_last():
    panel = so.calibrate(paper_quotes("small"), so.Heston(), panel="date")
    first = str(next(iter(panel.latent)))
    shown = plot_data(panel, "smiles", view=View(date=first))
    assert shown["panels"] != plot_data(panel, "smiles")["panels"]
    day = panel.used.labels["date"].astype(str) == first
    assert sum(len(each["market"]["volatility"]) + each["missing"] for each in shown["panels"]) <= day.sum()


def test_residuals_in_volatility_points_are_those_of_the_frame(fitted):
    found = plot_data(fitted, "residuals", view=View(unit="vol_points"))
    frame = fitted.to_frame()
    total = np.nansum(
        [
            m * c
            for row, n in zip(found["mean"], found["count"], strict=True)
            for m, c in zip(row, n, strict=True)
            if m is not None
        ]
    )
    assert total == pytest.approx(100 * np.nansum(frame["vol_residual"].to_numpy()), rel=1e-9)
    assert found["unit"] == "volatility points"


def test_another_unit_is_refused():
    with pytest.raises(so.errors.StrikeoutError):
        View(unit="apples")
