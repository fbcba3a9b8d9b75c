"""Interactive drawings: the same numbers as the table, text escaped, no inline style, and matplotlib beside them."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.figure import Figure

import strikeout as so
from strikeout.plots.drawing import round_values
from strikeout.plots.influence_map import expiry_axis, ratio_axis, shortest_between
from strikeout.plots.maps import draw_influence, map_for_page
from strikeout.plots.panels import After, Track, draw_smiles, draw_tracks
from strikeout.quotes.selection import select

EVIL = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def calibration():
    quotes = so.paper.quotes("small")
    source = np.where(np.arange(len(quotes)) % 2, EVIL, "it's").astype(object)
    labelled = so.Quotes(
        ids=quotes.ids, contracts=quotes.contracts, observed=quotes.observed, labels={**quotes.labels, "source": source}
    )
    return so.calibrate(labelled, so.Heston())


def elements(svg: str, name: str) -> list[ElementTree.Element]:
    """The elements of this name; the text must be well-formed."""
    return list(ElementTree.fromstring(f"<div>{svg}</div>").iter(name))


@pytest.mark.parametrize("kind", ["smiles", "residuals", "influence"])
def test_every_kind_is_well_formed_has_words_and_a_figure(calibration, kind):
    drawn = so.draw(calibration, kind)
    assert elements(drawn.svg, "svg")
    assert drawn.alternative
    assert drawn.table.rows
    assert not re.search(r"\sstyle=|<script|\son\w+=", drawn.svg)
    assert isinstance(drawn.figure(), Figure)
    shown = drawn._repr_mimebundle_(include={"image/png"})
    assert drawn.svg in shown["text/html"]
    assert shown["image/png"].startswith(b"\x89PNG")


def test_the_path_of_a_panel_is_drawn_with_every_group():
    panel = so.calibrate(so.synthetic.panel_quotes(12), so.Heston(), panel="date")
    drawn = so.draw(panel)
    assert [row[1] for row in drawn.table.rows] == list(panel.groups)
    assert len(elements(drawn.svg, "circle")) == 12


def test_a_smile_has_a_point_per_quote_of_its_table(calibration):
    drawn = calibration.plot_smiles()
    titles = {each.text.partition(":")[0] for each in elements(drawn.svg, "title")}
    assert titles <= {row[1] for row in drawn.table.rows}
    assert len(titles) > 0.9 * len(drawn.table.rows)


def test_quotes_struck_out_are_crosses_and_the_curve_after_is_beside_the_model(calibration):
    gone = calibration.used.ids[:3].tolist()
    after = After({name: 1.05 * value for name, value in calibration.parameters.items()}, removed=gone)
    drawn = draw_smiles(calibration, after=after)
    crossed = [each for each in elements(drawn.svg, "path") if each.get("class") == "so-struck"]
    lines = [each for each in elements(drawn.svg, "path") if each.get("class") == "so-after"]
    assert len(crossed) <= 3
    assert {row[1] for row in drawn.table.rows if row[-1] == "yes"} == set(gone)
    assert len(lines) == len(elements(drawn.svg, "svg"))


def test_a_map_of_influences_has_a_cell_per_group_whose_condition_selects_it(calibration):
    measured = so.influence(calibration, "date,source")
    drawn = measured.plot_map()
    cells = [each for each in elements(drawn.svg, "rect") if each.get("data-n")]
    assert len(cells) == measured.rows
    assert sum(int(each.get("data-n")) for each in cells) == calibration.count
    assert EVIL not in drawn.to_html()
    assert isinstance(drawn.figure(), Figure)
    one_label = so.influence(calibration, "date").plot_map(parameter="vol_of_vol")
    assert len([each for each in elements(one_label.svg, "rect") if each.get("data-n")]) == 90


def test_a_map_of_single_quotes_or_an_unknown_kind_is_refused(calibration):
    with pytest.raises(so.errors.UsageError):
        so.influence(calibration).plot_map()
    with pytest.raises(so.errors.UsageError):
        so.draw(calibration, "pie")
    with pytest.raises(so.errors.UsageError):
        so.draw(calibration, "influence", parameter="none")


@pytest.mark.parametrize("by", [None, "moneyness", "source"])
def test_the_conditions_of_a_map_divide_all_quotes(calibration, by):
    found = map_for_page(calibration, by)
    for axis in (found.down, found.across):
        chosen = [select(calibration.used, condition) for condition in axis.conditions]
        assert [len(names) for names in chosen] == np.bincount(axis.place).tolist()
        assert sum(map(len, chosen)) == calibration.count
    assert len(draw_influence(found, most=3).table.rows) == 3
    distances = [row[3].value for row in found.to_table().rows]
    assert distances == sorted(distances, reverse=True)


@pytest.mark.parametrize("days", [(7, 14, 30), tuple(range(5, 900, 20))])
def test_the_conditions_of_expiries_select_their_rows_in_single_expiries_and_in_buckets(days):
    years = np.array(days) / 365.0
    contracts = so.Contracts(forward=100.0, strike=100.0, expiry=years, discount=1.0, is_call=True)
    quotes = so.Quotes(ids=[str(day) for day in days], contracts=contracts, observed=np.ones(len(days)))
    axis = expiry_axis(quotes, at_most=12)
    assert [len(select(quotes, each)) for each in axis.conditions] == np.bincount(axis.place).tolist()


def test_ranges_of_strike_over_forward_contain_their_lower_end():
    strikes = np.array([30.0, 50.0, 94.999, 95.0, 100.0, 105.0, 250.0])
    contracts = so.Contracts(forward=100.0, strike=strikes, expiry=1.0, discount=1.0, is_call=True)
    quotes = so.Quotes(ids=[f"{strike:g}" for strike in strikes], contracts=contracts, observed=np.ones(7))
    axis = ratio_axis(quotes)
    assert axis.names == ("below 0.5", "0.5 to 0.6", "0.9 to 0.95", "0.95 to 1", "1 to 1.05", "1.05 to 1.1", "from 2")
    assert [select(quotes, each).tolist() for each in axis.conditions] == [[name] for name in quotes.ids.tolist()]


def test_tracks_interrupt_the_line_at_a_missing_value_and_mark_events():
    track = Track(EVIL, ["1", "2", "3"], [1.0, None, 2.0], [0.1, None, None], {2: EVIL})
    drawn = draw_tracks([track], title="Drift")
    assert EVIL not in drawn.svg
    line = next(each for each in elements(drawn.svg, "path") if each.get("class") == "so-line")
    assert line.get("d").count("M") == 2
    assert [each.get("class") for each in elements(drawn.svg, "line")].count("so-event") == 1


def test_round_values_are_inside_and_few():
    for low, high in ((0.0, 1.0), (-3.2, 7.9), (1e-9, 3e-9), (99.0, 101.0)):
        values = round_values(low, high, 6)
        assert 2 <= len(values) <= 7
        assert all(low <= value <= high * (1 + 1e-9) for value in values)
    assert round_values(1.0, 1.0, 5) == []
    assert 0.1 < shortest_between(0.1, 0.2) < 0.2
