"""An attacker wants a certificate to hold that shows parameters of the attacker's choice."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import strikeout as so
from strikeout.assurance.certificate import Certificate
from strikeout.assurance.independent_state import IndependentState, independent_block
from strikeout.statistics.system import WHOLE
from tests.attacks.certificates import issued
from tests.cli.typed import run

LIE = {"mean_reversion": 9.0, "long_variance": 0.5, "vol_of_vol": 1.7, "correlation": 0.77, "initial_variance": 0.4}
LIES = {name: value.hex() for name, value in LIE.items()}


def failing(certificate: Certificate, quotes: so.Quotes, **how) -> set[str]:
    found = so.verify(certificate, quotes, **how)
    assert not found.holds, found.summary()
    return {check.name for check in found.checks if check.holds is False}


def described(quotes: so.Quotes, at: dict[str, float]) -> dict:
    """The honest state of the quotes at a reference of the attacker's choice."""
    model = so.Heston().suited(quotes.contracts)
    found = independent_block(quotes, model, at, residual="price", weights="given")
    return {
        "kind": "normal equations",
        "digest": found.digest(),
        "count": found.count,
        "schema": found.schema.digest(),
        "reference": {name: value.hex() for name, value in at.items()},
    }


def step_of_nothing(**objective) -> Certificate:
    """STATE and STEP from a reference that is the lie itself."""
    honest, kept = issued("step").certificate, issued("step").retained
    return replace(honest, parameters=LIES, state=described(kept, LIE), objective={**honest.objective, **objective})


def test_by_a_step_in_which_no_parameter_moves():
    kept = issued("step").retained
    assert failing(step_of_nothing(fixed=LIES), kept) == {"OBJECTIVE"}
    assert {"STEP", "OPTIMUM"} <= failing(step_of_nothing(), kept)
    held = step_of_nothing(on_bound=LIES, bounds={name: [text, text] for name, text in LIES.items()})
    assert failing(held, kept) == {"OBJECTIVE"}


@pytest.mark.parametrize("facts", [{"ridge": (1e300).hex(), "free": list(LIE)}, {"ridge": "none", "free": []}], ids=str)
def test_by_a_step_with_a_ridge_or_free_parameters_of_its_own(facts):
    made = step_of_nothing()
    assert failing(replace(made, claims={**made.claims, "STEP": facts}), issued("step").retained) == {"BYTES"}


def test_by_a_step_without_an_optimum():
    """The step of a reference that leads somewhere else, honestly solved."""
    honest, kept = issued("step").certificate, issued("step").retained
    at = {"mean_reversion": 4.0, "long_variance": 0.03, "vol_of_vol": 0.8, "correlation": 0.2, "initial_variance": 0.09}
    model = so.Heston().suited(kept.contracts)
    step = IndependentState(None, {WHOLE: independent_block(kept, model, at, residual="price", weights="given")}).step(
        free=[0, 1, 2, 3, 4]
    )[0]
    moved = {name: (value + change).hex() for (name, value), change in zip(at.items(), step, strict=True)}
    alone = {name: facts for name, facts in honest.claims.items() if name != "OPTIMUM"}
    made = replace(honest, parameters=moved, state=described(kept, at))
    assert failing(made, kept) == {"OPTIMUM"}
    silent = replace(made, claims=alone, obstacles={**honest.obstacles, "OPTIMUM": "FAR"})
    assert failing(silent, kept) == {"BYTES"}


def test_under_a_claim_about_the_state_alone():
    honest, kept = issued("recalibrated").certificate, issued("recalibrated").retained
    bare = {name: honest.objective[name] for name in ("weights", "residual", "select")}
    none = dict.fromkeys(("STEP", "OPTIMUM", "NEVER_SEEN"), "FAR")
    made = replace(honest, claims={"STATE": {}}, obstacles=none, objective=bare, parameters={})
    found = so.verify(made, kept)
    assert found.holds
    assert (found.state_is_right, found.parameters_follow, found.is_optimum) == (True, None, None)
    assert found.silent == ("It claims nothing of parameters.",)
    assert failing(replace(made, parameters=LIES), kept) == {"BYTES"}


@pytest.mark.parametrize("tolerance", ["inf", (2.0).hex(), (1e300).hex(), (-1.0).hex(), "nan"])
def test_within_a_tolerance_without_end(tolerance):
    """Every parameter 5 % off, as an optimum."""
    honest, kept = issued("step").certificate, issued("step").retained
    off = {name: (1.05 * float.fromhex(text)).hex() for name, text in honest.parameters.items()}
    made = replace(honest, parameters=off, claims={**honest.claims, "OPTIMUM": {"tolerance": tolerance}})
    assert failing(made, kept) & {"BYTES", "OPTIMUM"}


@cache
def wave():
    """A model with many valleys, its quotes, and an honest certificate of striking one of them out."""
    rng = np.random.default_rng(1)
    x = np.linspace(0, 3, 60)
    y = np.sin(2 * x) + 0.05 * rng.standard_normal(60)
    quotes = so.Quotes.from_columns([f"q{i}" for i in range(60)], y, x=x)
    model = so.custom_model("wave", parameters={"b": 2.2}, price=lambda b, x: np.sin(b * x))
    return model, quotes, so.forget(so.calibrate(quotes, model), ids=["q3"]).certificate


@pytest.mark.parametrize("starts", [{"b": (4.3).hex()}, [{"b": (4.3).hex()}]], ids=str)
def test_of_a_valley_of_its_own(starts):
    """b = 4.44 in place of 2.00, at 480 times the cost: stationary, identified, and found from that start."""
    model, quotes, honest = wave()
    kept = quotes.without(["q3"])
    wrong = so.calibrate(kept, model, starts={"b": 4.3})
    assert wrong.converged
    assert wrong.cost > 100.0 * so.calibrate(kept, model).cost
    made = replace(
        honest,
        parameters={"b": wrong.parameters["b"].hex()},
        objective={**honest.objective, "starts": starts},
    )
    assert failing(made, kept, model=model) == {"OPTIMUM", "NEVER_SEEN"}
    asked = {name: x for name, x in honest.objective.items() if name not in ("starts", "feller", "threshold")}
    stationary = replace(
        made,
        claims={name: facts for name, facts in honest.claims.items() if name != "NEVER_SEEN"},
        obstacles={**honest.obstacles, "NEVER_SEEN": "NO_CALIBRATION"},
        objective=asked,
        operator="refine",
    )
    assert failing(stationary, kept, model=model) == {"OPTIMUM"}


def test_no_such_valley_is_certified_in_the_first_place():
    model, quotes, _ = wave()
    made = so.forget(so.calibrate(quotes, model, starts={"b": 4.3}), ids=["q3"]).certificate
    assert set(made.claims) == {"STATE"}
    assert made.obstacles["OPTIMUM"] == made.obstacles["NEVER_SEEN"] == "OTHER_VALLEY"
    assert made.parameters == {}
    found = so.verify(made, quotes.without(["q3"]), model=model)
    assert found.holds, found.summary()


def test_starts_of_ones_own_that_lead_to_the_same_valley_are_named():
    model, quotes, _ = wave()
    made = so.forget(so.calibrate(quotes, model, starts={"b": 2.1}), ids=["q3"]).certificate
    found = so.verify(made, quotes.without(["q3"]), model=model)
    assert found.holds, found.summary()
    assert found.laid_down == ("the search begins at 1 start of the issuer's own",)


def test_of_another_loss_under_the_name_of_least_squares():
    """A robust fit, whose threshold is written beside the squared loss."""
    book = so.synthetic.random_quotes(200, maturities=4, seed=2, noise=1e-2)
    spoiled = book.with_observed(book.observed + np.where(np.arange(200) % 17 == 0, 0.5, 0.0))
    kept = spoiled[5:]
    robust = so.forget(so.calibrate(spoiled, so.Heston(), loss="huber"), ids=spoiled.ids[:5]).certificate
    found = so.verify(robust, kept)
    assert found.holds, found.summary()
    assert any("huber" in clause for clause in found.laid_down)
    assert failing(replace(robust, objective={**robust.objective, "loss": "squared"}), kept) == {"BYTES"}
    plain = {**robust.objective, "loss": "squared", "threshold": None}
    assert {"OPTIMUM", "NEVER_SEEN"} <= failing(replace(robust, objective=plain), kept)
    wide = {**robust.objective, "threshold": (1e3).hex()}
    assert {"NEVER_SEEN"} <= failing(replace(robust, objective=wide), kept)


def test_with_all_but_one_parameter_fixed_the_fixed_ones_are_named():
    honest, kept = issued("recalibrated").certificate, issued("recalibrated").retained
    off = {name: 1.05 * float.fromhex(text) for name, text in honest.parameters.items()}
    lies = {name: value for name, value in off.items() if name != "initial_variance"}
    made = so.forget(so.calibrate(kept, so.Heston(), fixed=lies), ids=kept.ids[:1]).certificate
    found = so.verify(made, kept[1:])
    assert found.holds
    assert found.laid_down == tuple(f"{name} is fixed at {value:g}" for name, value in lies.items())
    assert honest.objective["fixed"] == {}


def test_the_command_ends_with_one_and_says_so(tmp_path):
    made, kept = step_of_nothing(fixed=LIES), issued("step").retained
    so.write_quotes(kept, tmp_path / "kept.csv")
    (tmp_path / "forged.json").write_bytes(made.to_bytes())
    done = run("verify", tmp_path / "forged.json", tmp_path / "kept.csv")
    assert done.exit_code == 1
    assert done.stdout.startswith("NOT verified.")
    assert "the quotes determine none" in " ".join(done.stdout.split())
