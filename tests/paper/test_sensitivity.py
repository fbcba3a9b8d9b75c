"""Leaving one shard out: what the report says about it, in numbers."""

from __future__ import annotations

import numpy as np
import pytest

import strikeout as so
from strikeout.paper.experiments.report import QUICK, find
from strikeout.paper.experiments.sensitivity import CUTS, HIGH, shard_influences, sourced


@pytest.fixture(scope="module")
def found():
    book = sourced(so.paper.quotes("large"), seed=42)
    return list(shard_influences(so.calibrate(book, so.Heston())))


def first(found, cut):
    return max((one for one in found if one.cut == cut), key=lambda one: one.one_step)


def test_every_shard_of_every_cut_is_left_out_once(found):
    counts = {cut: [one for one in found if one.cut == cut] for cut in CUTS}
    assert {cut: len(ours) for cut, ours in counts.items()} == {"period": 6, "maturity": 3, "strike": 5, "source": 3}
    assert all(sum(one.quotes for one in ours) == 2700 for ours in counts.values())


def test_the_source_that_quotes_too_high_moves_the_calibration_most(found):
    assert first(found, "source").shard == "source C"
    assert first(found, "source").one_step == max(one.one_step for one in found)


def test_without_the_source_that_quotes_too_high_the_fit_is_better_than_without_any_other_shard(found):
    assert min(found, key=lambda one: one.rmse_change).shard == "source C"


def test_the_longest_maturity_moves_the_calibration_most(found):
    assert first(found, "maturity").shard == "90 trading days"


def test_the_downdate_ranks_and_measures_as_the_refit_does(found):
    """One step errs to second order: a thousandth of a move of a few standard errors."""
    apart = [abs(one.one_step - one.refit) / one.refit for one in found]
    assert min(apart) > 0.0  # the refit is another computation
    assert max(apart) < 0.01


def test_only_source_c_quotes_otherwise_than_the_book():
    book = so.paper.quotes("small")
    made = sourced(book, seed=1)
    moved = made.observed - book.observed
    is_high = made.labels["source"] == "source C"
    np.testing.assert_allclose(moved[is_high], HIGH, rtol=1e-9)
    assert not moved[~is_high].any()


def test_a_seed_gives_the_same_numbers_again():
    first, again = (find("sensitivity", QUICK).tables["shards"].rows for _ in range(2))
    assert first == again
