"""Panels support the loss and the operators of plain calibrations, with the same laws."""

from __future__ import annotations

import numpy as np
import pytest

import strikeout as so
from strikeout.calibration.settings import Settings
from strikeout.forgetting.evidence import OPERATORS, Unsupported, unsupported

CLEAN = so.synthetic.panel_quotes(8, seed=3, noise=2e-4)
# One feed of one day is 20 % too high: an outlier for a robust loss, and a large misfit for a squared one.
BAD = (CLEAN.labels["date"] == np.unique(CLEAN.labels["date"])[2]) & (np.arange(len(CLEAN)) % 4 == 0)
BOOK = CLEAN.with_observed(np.where(BAD, 1.2 * CLEAN.observed, CLEAN.observed))
SMALL = so.paper.quotes("small")
KINDS = {"plain": None, "panel": "date"}
QUOTES = {"plain": SMALL, "panel": CLEAN}
SPOILT = {"plain": SMALL.with_observed(np.where(np.arange(len(SMALL)) % 40, 1.0, 1.2) * SMALL.observed), "panel": BOOK}


def calibrated(quotes: so.Quotes, kind: str, **options) -> so.results.Calibration:
    return so.calibrate(quotes, so.Heston(), panel=KINDS[kind], starts=1, **options)


def same(one: so.results.Calibration, other: so.results.Calibration) -> bool:
    return (one.parameters, one.latent, one.threshold, one.state.digest()) == (
        other.parameters,
        other.latent,
        other.threshold,
        other.state.digest(),
    )


@pytest.mark.parametrize(
    ("kind", "loss"),
    [
        *((kind, "huber") for kind in KINDS),
        *(("plain", loss) for loss in ("soft-l1", "cauchy", "tukey")),
        *(pytest.param("panel", loss, marks=pytest.mark.slow) for loss in ("soft-l1", "cauchy", "tukey")),
    ],
)
def test_forgetting_under_a_robust_loss_is_never_having_seen(kind, loss):
    book = SPOILT[kind]
    done = so.forget(calibrated(book, kind, loss=loss), ids=book.ids[5:25])
    assert same(done.calibration, calibrated(book.without(book.ids[5:25]), kind, loss=loss))
    assert so.verify(done.certificate, book.without(done.ids)).holds
    assert not so.verify(done.certificate, book.without(book.ids[4:24])).holds


def test_huber_s_loss_keeps_a_panel_near_the_clean_one_where_the_squared_loss_does_not():
    clean = calibrated(CLEAN, "panel")
    robust, squared = calibrated(BOOK, "panel", loss="huber"), calibrated(BOOK, "panel")

    def apart(found: so.results.Calibration) -> float:
        return max(abs(found.parameters[n] - v) / clean.standard_errors[n] for n, v in clean.parameters.items())

    assert robust.converged
    assert robust.threshold > 0.0
    assert apart(robust) < 3.0
    assert apart(squared) > 10.0 * apart(robust)


def test_the_order_of_rows_does_not_affect_a_robust_panel():
    order = np.random.default_rng(0).permutation(len(BOOK))
    assert same(calibrated(BOOK[order], "panel", loss="huber"), calibrated(BOOK, "panel", loss="huber"))


@pytest.mark.parametrize("kind", KINDS)
def test_recompute_and_restep_give_the_bits_of_the_downdate(kind):
    before, ids = calibrated(QUOTES[kind], kind), QUOTES[kind].ids[3:9]
    steps = [so.forget(before, ids=ids, operator=operator) for operator in ("downdate", "restep", "recompute")]
    assert len({step.step.system.digest() for step in steps}) == 1
    assert steps[0].parameters == steps[1].parameters == steps[2].parameters
    assert steps[0].latent == steps[1].latent == steps[2].latent


@pytest.mark.parametrize("kind", KINDS)
def test_refine_ends_nearer_to_the_refit_than_one_step_and_verifies(kind):
    before, ids = calibrated(QUOTES[kind], kind), QUOTES[kind].ids[:40]
    refined, step = (so.forget(before, ids=ids, operator=operator) for operator in ("refine", "downdate"))
    fresh = refined.calibration

    def apart(done: so.results.Forgetting) -> float:
        shared = [abs(done.parameters[n] - v) / fresh.standard_errors[n] for n, v in fresh.parameters.items()]
        latent = [abs(done.latent[g] - v) / fresh.latent_standard_errors[g] for g, v in fresh.latent.items()]
        return max([*shared, *latent])

    assert apart(refined) < 1e-4
    assert apart(refined) < 0.1 * apart(step)
    assert so.verify(refined.certificate, QUOTES[kind].without(ids)).holds
    assert refined.certificate.made["OPTIMUM"]


@pytest.mark.parametrize("by", [None, "date"])
def test_influence_in_a_robust_panel_finds_the_bad_day(by):
    found = so.influence(calibrated(BOOK, "panel"), by="date")
    robust = so.influence(calibrated(BOOK, "panel", loss="huber"), by=by)
    bad = str(np.unique(CLEAN.labels["date"])[2])
    assert str(found["date"][0]) == bad
    assert np.isfinite(robust["cooks_d"][robust["is_identified"]]).all()


def test_what_is_in_the_table_is_what_forget_does():
    """Each refusal of the table is one of ``forget``, and what it allows gives an answer."""
    for kind, quotes in QUOTES.items():
        for loss in ("squared", "huber"):
            before = calibrated(quotes, kind, loss=loss)
            for operator in OPERATORS:
                why = unsupported(operator, Settings(loss=loss), is_panel=kind == "panel")
                if why is None:
                    assert so.forget(before, ids=quotes.ids[:2], operator=operator).operator == operator
                else:
                    assert isinstance(why, Unsupported)
                    with pytest.raises(so.errors.UsageError):
                        so.forget(before, ids=quotes.ids[:2], operator=operator)
