"""The paper's own variants beside ours: they run, by name, and are as wrong as the documentation says."""

from __future__ import annotations

import numpy as np
import pytest

import strikeout as so
from strikeout.errors import RefusedError
from strikeout.forgetting.recompute import paper_step, refine
from strikeout.statistics.shards import Shards

BOOK = so.paper.quotes("large", seed=42)


def apart(parameters: dict[str, float], optimum: so.results.Calibration) -> float:
    """The largest difference in standard errors of the optimum."""
    values, errors = optimum.parameters, optimum.standard_errors
    return max(abs(x - values[name]) / errors[name] for name, x in parameters.items())


def shifted(days: range, factor: float = 0.1) -> tuple[so.Quotes, np.ndarray]:
    bad = np.isin(BOOK.labels["day"], days)
    return BOOK.with_observed(np.where(bad, factor * BOOK.observed, BOOK.observed)), BOOK.ids[bad]


def cache_of(calibration: so.results.Calibration, shards="day:10", weights=None) -> so.paper.Cache:
    return so.paper.Cache(
        calibration.quotes, model=so.Heston(), theta_ref=calibration.parameters, shards=shards, weights=weights
    )


def test_on_clean_random_deletions_the_papers_step_is_harmless():
    calibration = so.calibrate(BOOK, so.Heston())
    ids = np.random.default_rng(1).choice(BOOK.ids, 270, replace=False)
    optimum = so.calibrate(BOOK.without(ids), so.Heston())
    assert apart(paper_step(calibration, ids).parameters, optimum) < 0.1


def test_on_a_decimal_shift_the_papers_step_fails_and_ours_does_not():
    """The paper's flagship case, five days of prices a tenth of what they were; its metric does not see it."""
    spoilt, ids = shifted(range(60, 65))
    calibration = so.calibrate(spoilt, so.Heston())
    optimum = so.calibrate(spoilt.without(ids), so.Heston())
    assert apart(paper_step(calibration, ids).parameters, optimum) > 100.0
    assert so.forget(calibration, ids=ids).parameters == optimum.parameters


def test_relinearizing_the_touched_shards_alone_is_worse_than_relinearizing_all_or_none():
    spoilt, ids = shifted(range(60, 65), factor=0.999)
    calibration = so.calibrate(spoilt, so.Heston())
    retained = spoilt.without(ids)
    optimum = so.calibrate(retained, so.Heston())
    none = apart(paper_step(calibration, ids).parameters, optimum)
    some = apart(so.paper.relinearize(cache_of(calibration), ids, affected_only=True).parameters, optimum)
    everyone = apart(refine(calibration, ids, passes=1).parameters, optimum)
    assert everyone < none < some


def test_relinearizing_no_shard_takes_the_same_step_again():
    """With nothing touched the second system is the first: the mixture adds its step twice."""
    calibration = so.calibrate(BOOK, so.Heston())
    ids = BOOK.ids[:5]
    step = paper_step(calibration, ids)
    alone = Shards(BOOK.ids, np.arange(len(BOOK)), tuple(BOOK.ids.tolist()))
    twice = so.paper.relinearize(cache_of(calibration, shards=alone), ids, affected_only=True).parameters
    reference = calibration.parameters
    assert twice == pytest.approx(
        {name: 2 * value - reference[name] for name, value in step.parameters.items()}, rel=1e-12
    )


@pytest.mark.parametrize("where", ["day < 3", "strike = 90 and day > 100", "source = 'synthetic' and expiry_days = 30"])
def test_the_operator_named_paper_is_the_papers_fast_operator_in_exact_sums(where):
    calibration = so.calibrate(BOOK, so.Heston())
    done = so.forget(calibration, where=where, operator="paper")
    cache = so.paper.Cache(BOOK, model=so.Heston(), theta_ref=calibration.parameters, exact=True)
    assert done.parameters == so.paper.fast(cache, where).parameters
    assert done.operator == done.certificate.operator == "paper"
    assert set(done.certificate.claims) <= {"STATE", "OPTIMUM"}
    assert so.verify(done.certificate, done.calibration.quotes)


def test_the_operator_named_paper_claims_no_optimum_after_a_bad_feed():
    spoilt, ids = shifted(range(60, 65), factor=0.98)
    done = so.forget(so.calibrate(spoilt, so.Heston()), ids=ids, operator="paper")
    assert set(done.certificate.claims) == {"STATE"}
    assert done.certificate.parameters == {}


def test_the_operator_named_paper_refuses_a_step_out_of_the_model():
    spoilt, ids = shifted(range(60, 65))
    with pytest.raises(RefusedError) as refusal:
        so.forget(so.calibrate(spoilt, so.Heston()), ids=ids, operator="paper")
    assert refusal.value.outside
