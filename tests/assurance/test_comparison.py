"""Models side by side: the textbook's figures, the right order, and every failure in its row."""

from __future__ import annotations

import json

import numpy as np
import pytest

import strikeout as so
from strikeout.errors import RefusedError, UsageError
from tests.models.characteristic_functions import black_scholes
from tests.raising import raises

# Ezekiel (1930), as R's `cars`: the speed of cars and the distances they took to stop.
SPEED = [
    4, 4, 7, 7, 8, 9, 10, 10, 10, 11, 11, 12, 12, 12, 12, 13, 13, 13, 13, 14, 14, 14, 14, 15, 15, 15, 16, 16, 17, 17,
    17, 18, 18, 18, 18, 19, 19, 19, 20, 20, 20, 20, 20, 22, 23, 24, 24, 24, 24, 25,
]  # fmt: skip
DISTANCE = [
    2, 10, 4, 22, 16, 10, 18, 26, 34, 17, 28, 14, 20, 24, 28, 26, 34, 34, 46, 26, 36, 60, 80, 20, 26, 54, 32, 40, 32,
    40, 50, 42, 56, 76, 84, 36, 46, 68, 32, 48, 52, 56, 64, 66, 54, 70, 92, 93, 120, 85,
]  # fmt: skip

SPACE = so.ParameterSpace(("vol",), np.array([0.01]), np.array([3.0]), np.array([[0.2]]))
BLACK = so.CharacteristicModel("black", SPACE, log_cf=black_scholes)


def polynomial(degree: int):
    names = [f"b{i}" for i in range(degree + 1)]
    terms = " + ".join(f"{name} * x ** {power}" for power, name in enumerate(names))
    return so.custom_model(
        f"degree-{degree}", parameters=dict.fromkeys(names, 0.0), price=eval(f"lambda {', '.join(names)}, x: {terms}")
    )


def regression(y, x) -> so.Quotes:
    return so.Quotes.from_columns([f"r{i}" for i in range(len(y))], np.asarray(y, float), x=np.asarray(x, float))


@pytest.fixture(scope="module")
def cubic() -> so.Quotes:
    x = np.linspace(-1.0, 1.0, 60)
    noise = 0.1 * np.random.default_rng(8).standard_normal(60)
    return regression(1.0 - x + 2.0 * x**3 + noise, x)


def test_aic_and_bic_are_those_that_r_prints_for_its_own_data():
    """R 4: AIC(lm(dist ~ speed, cars)) is 419.1569, BIC 424.8929. R counts the constants and the noise as well."""
    found = so.compare_models(regression(DISTANCE, SPEED), [polynomial(1)])["degree-1"]
    constant = 50 * np.log(2 * np.pi) + 50
    assert found.aic + constant + 2.0 == pytest.approx(419.1569, abs=5e-5)
    assert found.bic + constant + np.log(50.0) == pytest.approx(424.8929, abs=5e-5)


def test_the_model_that_made_the_quotes_comes_first_and_a_larger_one_pays_for_its_parameters(cubic):
    found = so.compare_models(cubic, [polynomial(degree) for degree in (1, 2, 3, 4)])
    assert next(iter(found)) == "degree-3"
    assert found.best("bic").name == "degree-3"
    assert found.best("rmse").name == "degree-4"
    assert found["degree-3"].parameters == 4
    wide, narrow = found["degree-4"], found["degree-3"]
    lower = 60 * np.log(wide.calibration.cost / narrow.calibration.cost)
    assert wide.aic - narrow.aic == pytest.approx(lower + 2.0, rel=1e-9)
    assert wide.bic - narrow.bic == pytest.approx(lower + np.log(60.0), rel=1e-9)
    assert "degree-3 has the lowest AIC and BIC" in found.summary()


def test_residuals_that_follow_each_other_are_said_to_be_worth_fewer_quotes(cubic):
    line = so.compare_models(cubic, [polynomial(1)])
    assert line["degree-1"].dependence > 0.5
    assert "independent ones" in line.summary()
    assert "independent ones" not in so.compare_models(cubic, [polynomial(3)]).summary()


def test_each_model_names_the_quotes_it_hangs_on(cubic):
    observed = cubic.observed.copy()
    observed[30] += 3.0
    found = so.compare_models(cubic.with_observed(observed), [polynomial(3)], most=2)["degree-3"]
    assert next(iter(found.influential)) == "r30"
    assert len(found.influential) == 2
    assert found.influential["r30"] == so.influence(found.calibration)["cooks_d"][0]


def test_heston_beats_black_on_quotes_that_heston_made():
    found = so.compare_models(so.paper.quotes("small"), [BLACK, "heston"])
    assert list(found) == ["heston", "black"]
    assert found["black"].aic - found["heston"].aic > 1000
    assert found["heston"].calibration.parameters == so.calibrate(so.paper.quotes("small"), so.Heston()).parameters


def test_a_model_that_refuses_is_a_row_and_not_the_end(cubic):
    found = so.compare_models(cubic, {"cubic": polynomial(3), "options": so.Heston()})
    assert list(found) == ["cubic", "options"]
    assert found["options"].calibration is None
    assert "rows of x" in found["options"].status
    assert found["options"].status in found.summary()


def test_a_model_that_does_not_converge_is_not_judged(cubic):
    def twice(a, b, x):
        return (a + b) * x  # only the sum is determined

    lost = so.custom_model("twice", parameters={"a": 0.3, "b": 0.1}, price=twice)
    found = so.compare_models(cubic, [lost, polynomial(2)])
    assert list(found) == ["degree-2", "twice"]
    assert np.isnan(found["twice"].aic)
    assert found["twice"].influential == {}
    assert found.best().name == "degree-2"
    assert f"twice: {found['twice'].status}." in found.sentences
    assert found.sentences[0] == "degree-2 has the lowest AIC and BIC."  # and it fits better


def test_the_best_of_those_that_converged_is_called_that_where_another_fits_better(cubic):
    def cube(a, b, c, d, e, x):
        return a + b * x + c * x**2 + (d + e) * x**3  # only the sum is determined

    lost = so.custom_model("cube", parameters=dict.fromkeys("abcde", 0.1), price=cube)
    found = so.compare_models(cubic, [lost, polynomial(1)])
    assert found["cube"].rmse < found["degree-1"].rmse
    assert found.sentences[0].startswith("degree-1 has the lowest AIC and BIC of those that converged.")


def test_huber_s_loss_has_no_likelihood_to_judge_by(cubic):
    found = so.compare_models(cubic, [polynomial(2), polynomial(3)], loss="huber")
    assert found.best() is None
    assert found.best("rmse").name == "degree-3"
    assert "the loss is not squared" in found.summary()


def test_progress_is_told_before_every_model():
    told = []
    models = ["black-scholes", "heston"]
    so.compare_models(so.paper.quotes("small"), models, progress=lambda *said: told.append(said))
    assert told == [("black-scholes", 0, 2), ("heston", 1, 2)]


def test_plain_values_survive_json(cubic):
    found = so.compare_models(cubic, {"cubic": polynomial(3), "options": so.Heston()})
    plain = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert {by: plain["best"][by] for by in ("aic", "bic", "rmse")} == {"aic": "cubic", "bic": "cubic", "rmse": "cubic"}
    assert [row["name"] for row in plain["models"]] == ["cubic", "options"]
    assert plain["models"][0]["values"] == found["cubic"].calibration.parameters
    assert plain["models"][1]["rmse"] is None
    assert "cubic" in found._repr_html_()


@pytest.mark.parametrize(
    ("models", "says"),
    [([], "give a list"), ("heston", "give a list"), (["heston", so.Heston()], "two models"), (["hestn"], "hestn")],
)
def test_lists_that_cannot_be_are_refused(cubic, models, says):
    with pytest.raises(UsageError, match=says):
        so.compare_models(cubic, models)


def test_what_is_wrong_with_the_quotes_is_an_error_and_not_a_row():
    book = so.paper.quotes("small")
    with raises(RefusedError, mentions={"weights"}):
        so.compare_models(book, ["heston"], weights="spread")


def test_quotes_that_do_not_count_have_no_say_in_any_figure():
    """The quotes in the money are moved far off: out of the money nothing changes."""
    quotes = so.synthetic.random_quotes(80, maturities=2, seed=4)
    is_otm = (quotes.contracts.log_moneyness >= 0.0) == quotes.contracts.is_call
    assert 10 < int(is_otm.sum()) < 70
    spoiled = quotes.with_observed(np.where(is_otm, quotes.observed, 2.0 * quotes.observed))
    found = so.compare_models(spoiled, ["heston"], select="otm")
    alone = so.compare_models(quotes[is_otm], ["heston"])
    assert found.count == alone.count == int(is_otm.sum())
    for figure in ("aic", "bic", "rmse", "dependence", "influential"):
        assert getattr(found["heston"], figure) == getattr(alone["heston"], figure), figure


def test_weights_in_the_order_of_the_book_go_with_the_quotes_out_of_the_money():
    quotes = so.synthetic.random_quotes(120, maturities=4, seed=3)
    weights = np.linspace(0.5, 2.0, len(quotes))
    fit = so.compare_models(quotes, ["heston"], weights=weights, select="otm")["heston"]
    assert fit.calibration.parameters == so.calibrate(quotes, so.Heston(), weights=weights, select="otm").parameters
    assert fit.calibration.count < len(quotes)


@pytest.mark.parametrize("by", ["aic", "bic", "vol_points", "spreads", "rmse"])
def test_the_measure_of_the_order_is_the_first_that_is_shown(by):
    found = so.compare_models(so.paper.quotes("small"), ["heston", "black-scholes"], most=1).ranked(by)
    assert found.headings[2].endswith("(rank)")
    assert sum("(rank)" in heading for heading in found.headings) == 1
    shown = [row[2] for row in found.rows()]
    expected = [getattr(fit, by) for fit in found.values()]
    if by in ("aic", "bic"):
        assert shown[0] == "+0.0"
    else:
        assert shown == [
            f"{value:.4g}" if by == "rmse" else f"{value:.3g}" if value == value else "-" for value in expected
        ]
    assert found.best() is None or found.best().name == found.best(by).name
