"""Settings: what was asked of one calibration can be asked again, of other quotes."""

from __future__ import annotations

import numpy as np
import pytest

import strikeout as so
from strikeout.calibration.settings import Settings
from strikeout.errors import RefusedError, UsageError
from strikeout.statistics.system import WHOLE
from tests.raising import raises

QUOTES = so.paper.quotes("small", seed=3)
RNG = np.random.default_rng(8)
SOME = QUOTES.ids[::9].tolist()

ASKED = {
    "nothing": {},
    "own weights": {"weights": RNG.uniform(0.5, 2.0, len(QUOTES))},
    "weights of which some are zero": {"weights": (RNG.random(len(QUOTES)) < 0.9).astype(float)},
    "a rule": {"weights": "vega"},
    "volatilities": {"residual": "implied_vol", "weights": "none"},
    "huber": {"loss": "huber"},
    "bounds and a fixed parameter": {"bounds": {"correlation": (-0.9, -0.1)}, "fixed": {"mean_reversion": 2.0}},
    "feller": {"feller": "enforce"},
    "one start": {"starts": 1},
    "own starts": {"starts": [dict(zip(so.Heston().parameters.names, [3, 0.05, 0.5, -0.4, 0.05], strict=True))]},
}


@pytest.mark.parametrize("asked", ASKED.values(), ids=ASKED)
def test_other_quotes_are_calibrated_as_if_the_options_were_given_again(asked):
    whole = so.calibrate(QUOTES, so.Heston(), **asked)
    retained = QUOTES.without(SOME)
    again = so.calibrate(retained, whole.asked, **whole.settings.keywords())
    if not isinstance(asked.get("weights", ""), str):
        asked = {**asked, "weights": asked["weights"][~np.isin(QUOTES.ids, SOME)]}
    fresh = so.calibrate(retained, so.Heston(), **asked)
    assert again.parameters == fresh.parameters
    assert again.state.digest() == fresh.state.digest()
    assert again.settings.keywords().keys() == whole.settings.keywords().keys()


def test_what_the_caller_changes_later_does_not_reach_the_settings():
    weights, bounds = np.ones(len(QUOTES)), {"correlation": (-0.9, 0.0)}
    start = {
        "mean_reversion": 3.0,
        "long_variance": 0.05,
        "vol_of_vol": 0.5,
        "correlation": -0.4,
        "initial_variance": 0.05,
    }
    kept = so.calibrate(QUOTES, so.Heston(), weights=weights, bounds=bounds, starts=[start]).settings
    weights[:], bounds["correlation"], start["vol_of_vol"] = 7.0, (0.0, 0.5), 1.0
    assert set(kept.weights.values()) == {1.0}
    assert kept.bounds == {"correlation": (-0.9, 0.0)}
    assert kept.starts[0]["vol_of_vol"] == 0.5


def test_the_model_as_it_was_asked_for_is_kept_beside_the_one_that_suits_the_quotes():
    rng = np.random.default_rng(4)
    expiry = np.exp(rng.uniform(np.log(0.1), np.log(2.0), 1001))
    strike = 100.0 * np.exp(rng.uniform(-0.5, 0.5, 1001) * np.sqrt(expiry))
    contracts = so.Contracts(forward=100.0, strike=strike, expiry=expiry, discount=1.0, is_call=True)
    observed = so.Heston().price([2.0, 0.06, 0.3, -0.6, 0.06], contracts) + 1e-3 * rng.standard_normal(1001)
    quotes = so.Quotes(ids=np.arange(1001).astype(str), contracts=contracts, observed=observed)
    found = so.calibrate(quotes, so.Heston(), starts=1)
    assert (found.model, found.asked) == (so.Heston(expiries="scattered"), so.Heston())
    # A book one quote smaller is priced in the other way, and a fresh calibration of it would be too.
    smaller = quotes.without(["0"])
    again = so.calibrate(smaller, found.asked, **found.settings.keywords())
    assert again.state.digest() == so.calibrate(smaller, so.Heston(), starts=1).state.digest()


def test_weights_by_id_that_lack_a_quote_are_refused_by_name():
    weights = dict.fromkeys(QUOTES.ids.tolist()[1:], 1.0)
    with raises(UsageError, ids=["small-000-30-90"]):
        so.calibrate(QUOTES, so.Heston(), weights=weights)


def test_weights_by_id_and_in_order_are_the_same():
    weights = RNG.uniform(0.5, 2.0, len(QUOTES))
    rows = RNG.permutation(len(QUOTES))
    by_id = dict(zip(QUOTES.ids.tolist(), weights.tolist(), strict=True))
    one = so.calibrate(QUOTES, so.Heston(), weights=weights)
    other = so.calibrate(QUOTES[rows], so.Heston(), weights=by_id)
    assert one.parameters == other.parameters
    assert one.state == other.state


def test_settings_have_the_defaults_of_calibrate():
    assert so.calibrate(QUOTES, so.Heston()).settings == Settings()


def test_the_state_is_what_is_known_of_the_quotes_and_not_what_was_found():
    one = so.calibrate(QUOTES, so.Heston())
    other = so.calibrate(QUOTES, so.Heston(), starts=1, fixed={"mean_reversion": 1.0}, loss="huber")
    assert one.parameters != other.parameters
    assert one.state.digest() == other.state.digest()
    assert one.state.count == len(QUOTES)


def test_the_reference_is_the_robust_calibration_and_hardly_feels_a_bad_day():
    prices = QUOTES.observed.copy()
    prices[QUOTES.labels["day"] == 7] *= 10.0
    clean, dirty = so.calibrate(QUOTES, so.Heston()), so.calibrate(QUOTES.with_observed(prices), so.Heston())
    robust = so.calibrate(QUOTES.with_observed(prices), so.Heston(), loss="huber")
    assert dirty.references == {WHOLE: robust.parameters} == robust.references
    away = {
        name: abs(dirty.references[WHOLE][name] - clean.parameters[name]) / clean.standard_errors[name]
        for name in clean.parameters
    }
    assert max(away.values()) < 1.0
    schema = dirty.footprints.whole.schema
    assert dict(zip(schema.parameters, schema.reference, strict=True)) == dirty.references[WHOLE]
    assert len(dirty.footprints.whole) == len(QUOTES)


def test_a_price_too_large_for_the_grid_is_refused_when_the_state_is_asked_for():
    prices = QUOTES.observed.copy()
    prices[0] = 1e12
    found = so.calibrate(QUOTES.with_observed(prices), so.Heston(), starts=1)
    with raises(RefusedError, column="residual", ids=["small-000-30-90"]):
        found.state  # noqa: B018
