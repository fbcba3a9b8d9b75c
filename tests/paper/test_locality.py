"""Figures 3 and 4: sharded recompute saves where forgetting is local, and nothing where it is scattered."""

from __future__ import annotations

import numpy as np
import pytest

from strikeout.paper.experiments import locality


@pytest.fixture(scope="module")
def points():
    return list(locality.measured("small", seed=42, runs=1))


def chosen(points, **wanted):
    return [point for point in points if all(getattr(point, name) == value for name, value in wanted.items())]


def test_figure_3_scattered_forgetting_touches_nearly_every_shard_and_saves_nothing(points):
    some = [point for point in chosen(points, spread="scattered", cut="time") if point.fraction >= 0.10]
    assert len(some) == 3
    for point in some:
        assert point.touched >= point.shards - 1
        assert point.paper_ratio > 0.85


def test_figure_3_a_cluster_touches_few_shards_and_saves_most(points):
    (one,) = chosen(points, spread="clustered", cut="time", fraction=0.01)
    assert one.touched <= 2
    assert one.paper_ratio < 0.25


def test_recompute_visits_the_retained_quotes_of_the_touched_shards(points):
    assert len(points) == len(locality.FRACTIONS) * len(locality.SPREADS) * len(locality.CUTS)
    for point in points:
        assert point.retained == 540 - max(1, round(point.fraction * 540))
        assert point.visited <= point.retained
        assert (point.visited == point.retained) or point.touched < point.shards


def test_figure_4_the_ratio_grows_with_the_touched_shards(points):
    some = chosen(points, cut="hybrid")
    order = np.argsort([point.touched for point in some])
    ratios = np.array([point.paper_ratio for point in some])[order]
    assert ratios[:3].mean() < 0.3 < 0.7 < ratios[-3:].mean()


def test_shards_by_product_do_not_help_a_cluster_in_time(points):
    by_cut = {cut: chosen(points, spread="clustered", cut=cut, fraction=0.01)[0].paper_ratio for cut in locality.CUTS}
    assert by_cut["time"] < by_cut["product"]
    assert by_cut["hybrid"] < by_cut["product"]


@pytest.mark.parametrize("spread", locality.SPREADS)
def test_a_forget_set_has_the_asked_size_and_no_quote_twice(spread):
    rows = locality.forget_set(540, 0.05, spread, np.random.default_rng(1))
    assert len(rows) == len(set(rows.tolist())) == 27
    assert 0 <= rows.min() <= rows.max() < 540
    is_local = rows.max() - rows.min() == 26
    assert is_local == (spread == "clustered")


def test_figure_4_only_the_number_of_touched_quotes_counts_not_where_their_shards_are():
    found = list(locality.positions("small", seed=42, runs=1))
    early = {one.touched: one.paper_ratio for one in found if one.first == 0}
    late = {one.touched: one.paper_ratio for one in found if one.first == 3}
    assert sorted(early) == list(range(1, 10))
    assert sorted(late) == list(range(1, 7))
    assert all(late[count] == pytest.approx(early[count], rel=1e-12) for count in late)
    assert early[9] == 1.0
