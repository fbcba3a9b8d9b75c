"""One calibration per group, as one table."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner

import strikeout as so
from strikeout.cli import strikeout
from strikeout.errors import UsageError
from tests.raising import raises

HESTON = so.Heston()


@pytest.fixture(scope="module")
def quotes():
    """Two underlyings with different truths, and a third with too few quotes."""
    truths = ([2.0, 0.04, 0.4, -0.7, 0.05], [4.0, 0.09, 0.8, -0.3, 0.04])
    T, K = (one.ravel() for one in np.meshgrid([0.1, 0.5, 1.0, 2.0], np.arange(80.0, 121.0, 5.0)))
    contracts = so.Contracts(forward=100.0, strike=K, expiry=T, discount=1.0, is_call=K > 100.0)
    noise = np.random.default_rng(0).normal(0.0, 1e-3, (2, len(K)))
    prices = [HESTON.price(theta, contracts) + noise[i] for i, theta in enumerate(truths)]
    few = slice(0, 2)
    return so.Quotes(
        ids=[f"q{i}" for i in range(2 * len(K) + 2)],
        contracts=so.Contracts(
            forward=100.0,
            strike=np.r_[K, K, K[few]],
            expiry=np.r_[T, T, T[few]],
            discount=1.0,
            is_call=np.r_[K, K, K[few]] > 100.0,
        ),
        observed=np.r_[prices[0], prices[1], prices[0][few]],
        labels={"underlying": ["AAA"] * len(K) + ["BBB"] * len(K) + ["CCC"] * 2},
    )


@pytest.fixture(scope="module")
def fleet(quotes):
    return so.scale.calibrate_many(quotes, HESTON)


@pytest.fixture(scope="module")
def path(quotes, tmp_path_factory):
    file = tmp_path_factory.mktemp("fleet") / "three.csv"
    so.write_quotes(quotes, file)
    return str(file)


def run(*words):
    return CliRunner().invoke(strikeout, ["calibrate", *words])


def test_every_row_is_the_calibration_of_its_own_quotes_bit_for_bit(quotes, fleet):
    for fit in fleet.fits[:2]:
        alone = so.calibrate(quotes[quotes.labels["underlying"] == fit.group[0]], HESTON)
        assert fit.calibration.parameters == alone.parameters
        assert fit.calibration.state.digest() == alone.state.digest()


def test_a_group_that_is_refused_is_a_row_with_its_code(fleet):
    assert [fit.group for fit in fleet.fits] == [("AAA",), ("BBB",), ("CCC",)]
    last = fleet.fits[2]
    assert (last.calibration, last.converged, fleet.converged) == (None, False, False)
    assert last.ended == last.error.code
    assert fleet.to_dict()["fits"][2]["error"]["code"] == last.error.code


@pytest.mark.parametrize("library", ["polars", "pandas"])
def test_the_frame_has_one_row_per_group(fleet, library):
    frame = fleet.to_frame(library)
    assert list(frame["underlying"]) == ["AAA", "BBB", "CCC"]
    assert list(frame["correlation"])[:2] == [fit.calibration.parameters["correlation"] for fit in fleet.fits[:2]]
    assert np.isnan(list(frame["correlation"])[2])
    assert next(iter(frame["digest"])) == fleet.fits[0].calibration.state.digest()


def test_the_order_of_the_quotes_changes_nothing(quotes, fleet):
    turned = so.scale.calibrate_many(quotes[::-1], HESTON)
    assert turned.to_dict() == fleet.to_dict()


def test_progress_is_called_before_every_group(quotes):
    seen = []
    so.scale.calibrate_many(quotes, HESTON, progress=lambda *step: seen.append(step))
    assert seen == [("AAA", 0, 3), ("BBB", 1, 3), ("CCC", 2, 3)]


@pytest.mark.parametrize("asked", [{"by": ()}, {"by": "desk"}, {"loss": "cubic"}])
def test_a_question_that_makes_no_sense_is_refused_as_a_whole(quotes, asked):
    with pytest.raises(UsageError):
        so.scale.calibrate_many(quotes, HESTON, **asked)


def test_a_file_of_several_underlyings_is_refused_unless_it_is_said_what_to_do(path):
    refused = run(path, "--json")
    assert refused.exit_code == 2
    assert json.loads(refused.stderr)["error"]["underlyings"] == 3
    assert run(path, "--where", "underlying = 'AAA'").exit_code == 0
    assert run(path, "--pool").exit_code in (0, 3)


def test_a_book_of_several_underlyings_is_refused_unless_it_is_said_what_to_do(quotes, tmp_path):
    with so.Book.create(tmp_path / "three.book") as book:
        book.import_quotes(quotes)
    assert run(str(tmp_path / "three.book")).exit_code == 2
    assert run(str(tmp_path / "three.book"), "--pool").exit_code in (0, 3)


def test_each_underlying_of_a_file_is_a_row(path, fleet):
    done = run(path, "--by", "underlying", "--json")
    assert done.exit_code == 3  # CCC has too few quotes
    shown = json.loads(done.stdout)
    assert [row["group"] for row in shown["fits"]] == [{"underlying": name} for name in ("AAA", "BBB", "CCC")]
    assert shown["fits"][0]["parameters"] == fleet.fits[0].calibration.parameters
    table = run(path, "--by", "underlying", "--format", "csv").stdout.strip().splitlines()
    assert len(table) == 4


def test_a_python_call_with_several_underlyings_is_refused_unless_they_are_pooled(quotes, tmp_path):
    with raises(UsageError, mentions={"pool"}, underlyings=3) as refused:
        so.calibrate(quotes, HESTON)
    assert refused.value.facts["underlyings"] == 3
    pooled = so.calibrate(quotes, HESTON, pool=True)
    single = so.calibrate(quotes[quotes.labels["underlying"] == "AAA"], HESTON)
    assert any("underlyings" in warning for warning in pooled.warnings)
    assert not any("underlyings" in warning for warning in single.warnings)
    fixed = so.calibrate(quotes, HESTON, pool=True, fixed={"kappa": 2.0, "sigma": 0.5})
    assert so.forget(fixed, ids=quotes.ids[:1]).calibration.converged  # asked for once
    with pytest.raises(UsageError):
        so.compare_models(quotes, ["heston"])
    with pytest.raises(UsageError):
        so.scale.calibrate_many(quotes, HESTON, by="right")
    with so.Book.create(tmp_path / "three.book") as book:
        book.import_quotes(quotes)
        with pytest.raises(UsageError):
            book.calibrate()
        assert book.calibrate(pool=True).after.count == len(quotes)
