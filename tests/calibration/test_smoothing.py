"""A prior on the path of a panel."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import strikeout as so
from strikeout.calibration.smoothing import Smoothing, _smoothing
from strikeout.calibration.standard_errors import Reason
from strikeout.calibration.termination import Termination
from strikeout.errors import UsageError
from tests.raising import raises

HESTON = so.Heston()
ROUGH = 0.3  # standard deviation of the one quote that every second day has


def thinned(days: int, seed: int) -> so.Quotes:
    """Every second day has a single quote, sixty times as noisy as the others and weighted accordingly."""
    quotes = so.synthetic.panel_quotes(days, seed=seed, noise=5e-3)
    thin = quotes.labels["day"] % 2 == 1
    kept = ~thin | np.char.endswith(quotes.ids, "-60-100")
    noise = np.where(thin, ROUGH, 0.0) * np.random.default_rng(seed).standard_normal(len(quotes))
    weight = np.where(thin, (5e-3 / np.hypot(ROUGH, 5e-3)) ** 2, 1.0)
    rough = so.Quotes(
        ids=quotes.ids,
        contracts=quotes.contracts,
        observed=quotes.observed + noise,
        weight=weight,
        labels=dict(quotes.labels),
    )
    return rough[kept]


QUOTES = thinned(40, seed=4)


def panel_of(quotes: so.Quotes, latent: str = "free", **settings: Any) -> so.results.Calibration:
    return so.calibrate(quotes, HESTON, **{"panel": "date", "starts": 1, **settings}, latent=latent)


PANEL = panel_of(QUOTES)
SMOOTH = panel_of(QUOTES, "smoothed")
VALUES = np.array(list(SMOOTH.latent.values()))


def errors_of(latent: dict[str, float], quotes: so.Quotes) -> np.ndarray:
    truth = dict(zip(quotes.labels["date"].tolist(), quotes.labels["variance"].tolist(), strict=True))
    return np.array([latent[day] - truth[day] for day in latent])


def total(smoothing: Smoothing, point: np.ndarray, weights: np.ndarray) -> float:
    return smoothing.joint(point[:4], point[4:], weights).cost


def test_days_with_one_rough_quote_lean_on_their_neighbours():
    rough, smooth, scores = [], [], []
    for seed in range(5):
        quotes = thinned(40, seed)
        panel, found = panel_of(quotes), panel_of(quotes, "smoothed")
        assert found.converged
        rough.append(errors_of(panel.latent, quotes)[1::2])
        smooth.append(errors_of(found.latent, quotes)[1::2])
        scores.append(smooth[-1] / np.array(list(found.latent_standard_errors.values()))[1::2])
    assert np.sqrt(np.mean(np.square(smooth))) < 0.5 * np.sqrt(np.mean(np.square(rough)))
    # A hundred of them: the root mean square of standard normal numbers is within a quarter of one.
    assert 0.75 < np.sqrt(np.mean(np.square(scores))) < 1.25


def test_days_with_many_quotes_hardly_change():
    moves = [
        abs(SMOOTH.latent[day] - PANEL.latent[day]) / PANEL.latent_standard_errors[day] for day in PANEL.groups[::2]
    ]
    assert max(moves) < 1.0
    shared = [abs(SMOOTH.parameters[n] - x) / PANEL.standard_errors[n] for n, x in PANEL.parameters.items()]
    assert max(shared) < 1.0


def test_no_parameter_alone_raises_the_posterior_any_further():
    smoothing = _smoothing(PANEL)
    weights = smoothing.weights(VALUES)
    point = np.array([*SMOOTH.parameters.values(), *VALUES])
    step = np.array([*SMOOTH.standard_errors.values(), *SMOOTH.latent_standard_errors.values()])
    best = total(smoothing, point, weights)
    for i in range(len(point)):
        ahead, behind = point.copy(), point.copy()
        ahead[i] += 0.1 * step[i]
        behind[i] -= 0.1 * step[i]
        up, down = total(smoothing, ahead, weights), total(smoothing, behind, weights)
        assert min(up, down) > best
        # The gradient over the curvature, in tenths of a standard error.
        assert abs(up - down) < 0.01 * (up + down - 2.0 * best)


def test_standard_errors_are_those_of_a_dense_inverse():
    smoothing = _smoothing(PANEL)
    weights, a = smoothing.weights(VALUES), smoothing.chain.a
    size = 4 + len(VALUES)
    H = np.zeros((size, size))
    for n, day in enumerate(PANEL.groups):
        rows = PANEL.rows[day]
        theta = {**SMOOTH.parameters, "initial_variance": SMOOTH.latent[day]}
        _, slopes = HESTON.linearize(theta, QUOTES.contracts[rows])
        slopes = slopes * np.sqrt(QUOTES.weight[rows])[:, None]
        at = [0, 1, 2, 3, 4 + n]
        H[np.ix_(at, at)] += slopes.T @ slopes
    for t, w in enumerate(weights):
        H[4 + t, 4 + t] += w * a[t] ** 2
        H[5 + t, 5 + t] += w
        H[4 + t, 5 + t] -= w * a[t]
        H[5 + t, 4 + t] -= w * a[t]
    scale = 1.0 / np.sqrt(np.diag(H))
    wanted = np.sqrt(smoothing.noise * np.diag(np.linalg.inv(H * np.outer(scale, scale)))) * scale
    ours = [*SMOOTH.standard_errors.values(), *SMOOTH.latent_standard_errors.values()]
    np.testing.assert_allclose(ours, wanted, rtol=1e-6)


def test_a_panel_known_to_the_noise_converges_too():
    # Residuals of 5e-4: the cost itself is known to thirteen digits only, and the last steps are smaller than that.
    quotes = so.synthetic.panel_quotes(30, seed=1)
    panel, found = panel_of(quotes), panel_of(quotes, "smoothed")
    assert found.converged
    moves = [abs(found.latent[day] - x) / panel.latent_standard_errors[day] for day, x in panel.latent.items()]
    assert 0.0 < max(moves) < 0.1


def test_the_order_of_the_rows_changes_no_bit():
    shuffled = QUOTES[np.random.default_rng(1).permutation(len(QUOTES))]
    again = panel_of(shuffled, "smoothed")
    assert again.cost == SMOOTH.cost
    assert again.parameters == SMOOTH.parameters
    assert again.latent == SMOOTH.latent
    assert again.latent_standard_errors == SMOOTH.latent_standard_errors


def test_a_day_on_its_bound_stays_there_or_is_pulled_inside():
    ceiling = float(np.median(VALUES))
    fixed = {name: PANEL.parameters[name] for name in ("mean_reversion", "long_variance", "vol_of_vol")}
    settings: Any = {"fixed": fixed, "bounds": {"initial_variance": (1e-3, ceiling)}}
    bound, found = panel_of(QUOTES, **settings), panel_of(QUOTES, "smoothed", **settings)
    assert found.termination is Termination.CONVERGED_ON_BOUND
    assert found.latent_on_bound
    assert bound.latent_on_bound
    assert max(found.latent.values()) <= ceiling
    assert {n: found.parameters[n] for n in fixed} == fixed
    assert any(np.isnan(error) for error in found.latent_standard_errors.values())


@pytest.mark.parametrize(
    ("latent", "settings", "mentions"),
    [
        ("smoothed", {"panel": "day"}, ()),
        ("filtered", {"panel": "day"}, ()),
        ("smoothed", {"feller": "enforce"}, {"latent", "loss", "feller"}),
        ("smoothed", {"loss": "huber"}, {"latent", "loss", "feller"}),
        ("filtered", {"loss": "huber"}, {"loss"}),
        ("smoothed", {"panel": None}, {"latent", "panel"}),
        ("smoothed:inf", {}, {"latent", "panel"}),
        ("smoothed:-1", {}, {"latent"}),
        ("smoothed:much", {}, {"latent"}),
        ("free:1", {}, {"latent"}),
        ("rough", {}, {"latent"}),
    ],
)
def test_what_has_no_prior_is_refused(latent, settings, mentions):
    with raises(UsageError, mentions=mentions):
        panel_of(QUOTES, latent, **settings)


def test_moments_have_no_path():
    with raises(UsageError, mentions={"latent", "panel"}):
        so.calibrate(so.states.moments_of(QUOTES), HESTON, latent="smoothed")


def test_without_a_prior_the_answer_is_the_panel():
    for latent in ("smoothed:0", "filtered:0"):
        free = panel_of(QUOTES, latent)
        assert free.parameters == PANEL.parameters
        assert free.latent == PANEL.latent
        np.testing.assert_allclose(list(free.standard_errors.values()), list(PANEL.standard_errors.values()), rtol=1e-6)


def test_a_filtered_panel_has_the_path_of_the_filter_and_its_own_shared_parameters():
    found, path = panel_of(QUOTES, "filtered:2"), PANEL.filter(strength=2.0)
    assert found.parameters == PANEL.parameters
    assert found.latent == path.filtered
    assert found.latent_standard_errors == path.filtered_errors
    assert found.cost > PANEL.cost
    assert found.rmse == pytest.approx(np.sqrt(np.mean(np.square(found.residuals))), rel=1e-12)


@pytest.mark.parametrize("latent", ["smoothed", "filtered"])
def test_a_forgotten_day_was_never_seen_and_the_certificate_names_the_prior(latent):
    panel, day = panel_of(QUOTES, latent), PANEL.groups[6]
    gone = so.forget(panel, where=f"date = '{day}'", tolerance=0.5)
    kept = QUOTES[QUOTES.labels["date"] != day]
    never = panel_of(kept, latent)
    assert gone.operator == "recalibrate"
    assert gone.calibration.to_dict() == never.to_dict()
    assert gone.calibration.state.digest() == never.state.digest() == panel_of(kept).state.digest()
    certificate = gone.certificate
    assert certificate.claims.keys() == {"STATE", "NEVER_SEEN"}
    assert certificate.obstacles["OPTIMUM"] == "PRIOR"
    assert certificate.objective["panel"]["prior"] == latent
    assert so.verify(certificate, kept).holds
    assert so.verify(certificate.to_bytes(), kept).holds
    other = replace(certificate, objective=certificate.objective | {"panel": _without_prior(certificate)})
    assert not so.verify(other, kept).holds


def _without_prior(certificate: so.results.Certificate) -> dict[str, Any]:
    return {name: value for name, value in certificate.objective["panel"].items() if name != "prior"}


def test_a_prior_goes_with_no_claim_about_an_optimum():
    gone = so.forget(PANEL, where=f"date = '{PANEL.groups[6]}'").certificate
    panel = gone.objective["panel"] | {"prior": "smoothed"}
    forged = replace(gone, objective=gone.objective | {"panel": panel})
    with pytest.raises(UsageError):
        so.results.Certificate.from_bytes(forged.to_bytes())


def test_what_needs_the_optimum_of_the_quotes_refuses_a_prior():
    for refused in (
        lambda: SMOOTH.filter(),
        lambda: SMOOTH.regimes(),
        lambda: SMOOTH.diagnostics(),
        lambda: SMOOTH.footprints,
        lambda: so.influence(SMOOTH),
        lambda: so.robustness(SMOOTH, "vol_of_vol", count=1),
    ):
        with raises(UsageError, mentions={"latent"}):
            refused()


def test_the_summary_states_the_prior_and_the_unit_of_the_errors():
    assert SMOOTH.errors.basis.reason is Reason.PRIOR
    assert SMOOTH.errors.standard_errors == SMOOTH.standard_errors
    assert SMOOTH.to_dict()["latent"]["prior"] == "smoothed"
    facts = [line.split()[0] for line in SMOOTH.summary().splitlines() if line]
    assert "prior" in facts
    assert "prior" not in [line.split()[0] for line in PANEL.summary().splitlines() if line]


def test_a_strong_prior_leads_to_the_calibration_with_one_variance():
    quotes = so.paper.quotes("small")  # whose variance never moves
    plain = so.calibrate(quotes, HESTON, starts=1)
    strong = panel_of(quotes, "smoothed:1e6")
    assert strong.converged
    for name, value in strong.parameters.items():
        assert abs(value - plain.parameters[name]) < 1e-4 * plain.standard_errors[name]
    np.testing.assert_allclose(list(strong.latent.values()), plain.parameters["initial_variance"], rtol=1e-7)


def test_a_step_that_leaves_the_model_is_cut_short():
    quotes = so.synthetic.panel_quotes(20, seed=3, noise=0.1)  # one variance for all would need mean_reversion below 0
    found = panel_of(quotes, "smoothed:1e3")
    assert not found.converged
    assert all(value > 0.0 for name, value in found.parameters.items() if name != "correlation")
