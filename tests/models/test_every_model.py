"""What holds for every model that comes along: it keeps its promises, finds its parameters, and forgets to the bit."""

from __future__ import annotations

import numpy as np
import pytest

import strikeout as so
from strikeout.cli.book_commands import report_change
from strikeout.cli.terminal import Output
from strikeout.models.named import MODELS, described, model_named, remade
from tests.models.books import CASES, CONTRACTS

GONE = ["q3", "q20", "q40"]


@pytest.fixture(scope="module")
def calibrations():
    """Calibrations by name, each made once."""
    made: dict[str, so.results.Calibration] = {}

    def calibrated(name: str) -> so.results.Calibration:
        if name not in made:
            made[name] = so.calibrate(CASES[name].quotes(), CASES[name].model)
        return made[name]

    return calibrated


@pytest.mark.parametrize("name", CASES)
def test_every_promise_is_kept(name):
    found = so.check_model(CASES[name].model)
    assert found.holds, found.summary()


@pytest.mark.parametrize("name", CASES)
def test_a_calibration_finds_the_parameters_behind_the_quotes(name, calibrations):
    calibration = calibrations(name)
    assert calibration.converged, calibration.summary()
    for (parameter, found), truth in zip(calibration.parameters.items(), CASES[name].truth, strict=True):
        # Four standard errors: of some 60 parameters none should be farther in one draw, and none is.
        assert abs(found - truth) <= 4.0 * calibration.standard_errors[parameter], parameter


@pytest.mark.parametrize("name", CASES)
def test_forgetting_equals_never_having_seen(name, calibrations):
    case, calibration = CASES[name], calibrations(name)
    done = so.forget(calibration, ids=GONE)
    fresh = so.calibrate(case.quotes().without(GONE), case.model)
    assert done.parameters == fresh.parameters
    assert done.parameters != calibration.parameters
    assert done.calibration.state.digest() == fresh.state.digest() != calibration.state.digest()


@pytest.mark.parametrize("name", [name for name in CASES if name not in ("bates", "double-heston")])
def test_what_was_forgotten_comes_back_to_the_bit(name, calibrations):
    calibration = calibrations(name)
    back = so.restore(so.forget(calibration, ids=GONE))
    assert back.parameters == calibration.parameters
    assert back.state.digest() == calibration.state.digest()


@pytest.mark.parametrize("name", [name for name in CASES if name != "normal-sabr"])
def test_a_certificate_is_verified_by_its_name_alone(name, calibrations):
    done = so.forget(calibrations(name), ids=GONE)
    retained = CASES[name].quotes().without(GONE)
    assert so.verify(done.certificate, retained).holds
    assert not so.verify(done.certificate, CASES[name].quotes()).holds


@pytest.mark.parametrize("name", [name for name in CASES if "[2]" in " ".join(CASES[name].suited.parameters.names)])
def test_an_expiry_that_is_forgotten_takes_its_parameters_along(name, calibrations):
    case = CASES[name]
    quotes = case.quotes()
    gone = quotes.ids[CONTRACTS.expiry == 2.0].tolist()
    done = so.forget(calibrations(name), ids=gone)
    assert done.parameters == so.calibrate(quotes.without(gone), case.model).parameters
    assert not any(parameter.endswith("[2]") for parameter in done.parameters)
    assert "before" in done.summary()


def test_down_to_one_expiry_names_lose_their_years():
    case = CASES["sabr"]
    quotes = case.quotes()
    gone = quotes.ids[CONTRACTS.expiry != 0.5].tolist()
    done = so.forget(so.calibrate(quotes, case.model), ids=gone)
    assert list(done.parameters) == ["alpha", "correlation", "vol_of_vol"]
    assert np.isnan(list(done.moved.values())).all()  # there was no parameter of these names
    assert "alpha" in done.summary()


def test_a_book_that_learns_an_expiry_has_its_parameters_too(tmp_path, capsys):
    case = CASES["sabr"]
    quotes = case.quotes()
    with so.Book.create(tmp_path / "model.book", who="tests") as book:
        book.import_quotes(quotes[CONTRACTS.expiry < 2.0])
        book.calibrate(case.model)
        change = book.learn(quotes[CONTRACTS.expiry == 2.0])
    assert dict(change.after.parameters) == so.calibrate(quotes, case.model).parameters
    assert change.moved["alpha[2]"] is None
    report_change(change, Output())
    assert "alpha[2]" in capsys.readouterr().out


@pytest.mark.parametrize("name", MODELS)
def test_a_model_comes_back_from_its_description(name):
    model = model_named(name)
    plain = described(model)
    assert plain is not None
    assert plain["name"] == {"term-structure": "black-scholes", "natural-svi": "svi"}.get(name, name)
    assert remade(plain) == model


def test_a_description_keeps_every_choice_to_the_bit():
    for model in (
        so.SABR(beta=None, volatility="normal", expiries=(0.1, 1.0 / 3.0)),
        so.DoubleHeston(border=1.0 / 3.0),
        so.BlackScholes("quoted"),
        so.Heston(kernel="numpy", expiries="scattered"),
    ):
        assert remade(described(model)) == model
        assert remade(described(model)).name == model.name


def test_a_model_of_ones_own_has_no_description():
    own = so.custom_model("line", parameters={"slope": 1.0}, price=lambda slope, x: slope * x)
    assert described(own) is None


@pytest.mark.parametrize("name", ["bates", "sabr", "ssvi", "variance-gamma"])
def test_a_book_keeps_every_model(name, tmp_path):
    case = CASES[name]
    quotes = case.quotes()
    with so.Book.create(tmp_path / "model.book", who="tests") as book:
        book.import_quotes(quotes)
        kept = book.calibrate(case.model).after
        assert dict(kept.parameters) == so.calibrate(quotes, case.model).parameters
        book.forget(ids=GONE, reason="error")
        assert book.verify().holds
    with so.Book.open(tmp_path / "model.book", who="tests") as book:
        fresh = so.calibrate(quotes.without(GONE), case.model)
        assert book.calibration().parameters == fresh.parameters
        assert book.calibration().asked == case.model


def test_python_for_quantlib_is_refused_for_other_models_than_hestons(tmp_path):
    with so.Book.create(tmp_path / "model.book", who="tests") as book:
        book.import_quotes(CASES["bates"].quotes())
        book.calibrate(so.SSVI())
        with pytest.raises(so.errors.StrikeoutError, match="Heston only"):
            book.export(tmp_path / "model.py")
        book.export(tmp_path / "model.json")
