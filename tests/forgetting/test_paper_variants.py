"""The paper's own variants beside ours: they run, by name, and are as wrong as the documentation says."""

from __future__ import annotations

import numpy as np
import pytest

import strikeout as so
from strikeout.errors import UsageError
from strikeout.forgetting.refine import refine
from strikeout.forgetting.robust import huber_step
from strikeout.paper.steps import paper_huber_step, paper_relinearized, paper_step

BOOK = so.paper.quotes("large", seed=42)


def apart(parameters: dict[str, float], optimum: so.Calibration) -> float:
    """The largest difference in standard errors of the optimum."""
    values, errors = optimum.parameters, optimum.standard_errors
    return max(abs(x - values[name]) / errors[name] for name, x in parameters.items())


def shifted(days: range, factor: float = 0.1) -> tuple[so.Quotes, np.ndarray]:
    bad = np.isin(BOOK.labels["day"], days)
    return BOOK.with_observed(np.where(bad, factor * BOOK.observed, BOOK.observed)), BOOK.ids[bad]


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
    touched = retained[np.isin(retained.labels["day"] // 10, [6])]
    none = apart(paper_step(calibration, ids).parameters, optimum)
    some = apart(paper_relinearized(calibration, ids, touched=touched), optimum)
    everyone = apart(refine(calibration, ids, passes=1).parameters, optimum)
    assert everyone < none < some


def test_relinearizing_no_shard_takes_the_same_step_again():
    """With nothing touched the second system is the first: the mixture adds its step twice."""
    calibration = so.calibrate(BOOK, so.Heston())
    ids = BOOK.ids[:5]
    step = paper_step(calibration, ids)
    twice = paper_relinearized(calibration, ids, touched=BOOK[:0])
    reference = calibration.parameters
    assert twice == pytest.approx(
        {name: 2 * value - reference[name] for name, value in step.parameters.items()}, rel=1e-12
    )


def test_huber_weights_decided_again_beat_the_papers_fixed_ones():
    spoilt, bad = shifted(range(60, 75), factor=0.98)
    calibration = so.calibrate(spoilt, so.Heston(), loss="huber")
    for ids in (bad, np.random.default_rng(2).choice(BOOK.ids, 270, replace=False)):
        optimum = so.calibrate(spoilt.without(ids), so.Heston(), loss="huber")
        ours, paper = huber_step(calibration, ids), paper_huber_step(calibration, ids).parameters
        assert apart(ours, optimum) < 0.5 * apart(paper, optimum)
        assert so.forget(calibration, ids=ids).parameters == optimum.parameters


def test_the_papers_huber_variant_needs_a_huber_calibration():
    with pytest.raises(UsageError, match="Huber"):
        paper_huber_step(so.calibrate(BOOK, so.Heston()), BOOK.ids[:5])
