"""The paper's objects under its own symbols."""

from __future__ import annotations

import numpy as np
import pytest

import strikeout as so
from strikeout import paper

SMALL = paper.Heston(U_max=50, N_u=180)


@pytest.fixture(scope="module")
def quotes():
    return paper.quotes("small", quadrature="paper")


@pytest.fixture(scope="module")
def cache(quotes):
    return paper.Cache(quotes, model=SMALL, theta_ref=paper.TRUTH, shards="date")


@pytest.fixture(scope="module")
def exact(quotes):
    return paper.Cache(quotes, model=SMALL, theta_ref=paper.TRUTH, shards="date", exact=True)


def test_u_and_psi_are_the_gradient_times_the_residual_and_times_itself(cache, quotes):
    price, J = SMALL.linearize(paper.TRUTH, quotes.contracts)
    r = quotes.observed - price
    for i in (0, 17, 539):
        assert np.array_equal(cache.u[i], J[i] * r[i])
        assert np.array_equal(cache.psi[i], np.outer(J[i], J[i]))


def test_curvature_and_score_are_sums_in_the_order_of_the_quotes(cache):
    H, G = np.zeros((5, 5)), np.zeros(5)
    for u, psi in zip(cache.u, cache.psi, strict=True):
        H += psi
        G += u
    assert np.array_equal(cache.H, H)
    assert np.array_equal(cache.G, G)


def test_with_every_model_one_quote_is_added_after_the_other(quotes):
    """Also where the model's sensitivities are column by column in memory: NumPy would add pairwise."""
    cache = paper.Cache(quotes, model=so.Heston(), theta_ref=paper.TRUTH, shards="day:10")
    gone = quotes.ids[5:200]
    kept, codes, names = cache.kept(gone), cache.shards.codes, cache.shards.names

    def added(rows):
        H, G = np.zeros((5, 5)), np.zeros(5)
        for row in rows:
            H, G = H + cache.psi[row], G + cache.u[row]
        return H, G

    H, G = added(kept)
    found = paper.retrain(cache, gone)
    assert (found.H.tobytes(), found.G.tobytes()) == (H.tobytes(), G.tobytes())
    H, G = np.zeros((5, 5)), np.zeros(5)
    for code in range(len(names)):  # the first shards are gone as a whole
        H_k, G_k = added(kept[codes[kept] == code])
        H, G = H + H_k, G + G_k
    found = paper.recompute(cache, gone)
    assert (found.H.tobytes(), found.G.tobytes()) == (H.tobytes(), G.tobytes())


def test_recompute_prices_the_retained_quotes_of_the_touched_shards_alone(quotes, monkeypatch):
    cache = paper.Cache(quotes, model=so.Heston(), theta_ref=paper.TRUTH, shards="day:10")
    assert cache.H.shape == (5, 5)
    assert len(cache.H_k) == len(cache.shards)
    priced = []
    linearize = so.Heston.linearize
    monkeypatch.setattr(so.Heston, "linearize", lambda *given: priced.append(len(given[2])) or linearize(*given))
    gone = quotes.ids[:3]
    paper.recompute(cache, gone)
    assert priced == [sum(cache.shards.sizes[name] for name in cache.K(gone)) - 3]


def test_proposition_1_shards_sum_to_the_whole(cache):
    assert list(cache.H_k) == list(cache.G_k) == list(cache.shards.names)
    np.testing.assert_allclose(sum(cache.H_k.values()), cache.H, rtol=1e-13)
    np.testing.assert_allclose(sum(cache.G_k.values()), cache.G, rtol=1e-9, atol=1e-12 * np.abs(cache.u).sum())


def test_the_shards_of_a_forget_set_are_those_that_hold_one_of_its_quotes(cache, quotes):
    assert cache.K(quotes.ids[:7]) == ("2024-01-02", "2024-01-03")
    assert cache.K([]) == ()


@pytest.mark.parametrize("count", [1, 8, 135])
def test_the_operators_agree_to_rounding_in_floating_point(cache, quotes, count):
    gone = quotes.ids[:: 540 // count][:count]
    answers = [operator(cache, gone).theta for operator in (paper.fast, paper.recompute, paper.retrain)]
    assert all(np.allclose(answer, answers[2], rtol=1e-9, atol=0) for answer in answers)


@pytest.mark.parametrize("count", [1, 8, 135])
def test_the_operators_agree_bit_for_bit_in_integers(exact, quotes, count):
    gone = quotes.ids[:: 540 // count][:count]
    answers = {operator(exact, gone).theta.tobytes() for operator in (paper.fast, paper.recompute, paper.retrain)}
    assert len(answers) == 1


def test_the_loop_of_the_paper_prices_the_same_quotes(quotes):
    some = quotes[::27]
    cache = paper.Cache(some, model=SMALL, theta_ref=paper.TRUTH)
    np.testing.assert_allclose(
        paper.retrain(cache, some.ids[:2], loop=True), paper.retrain(cache, some.ids[:2]), rtol=1e-6
    )


def test_a_forget_set_may_be_ids_rows_a_mask_or_a_condition(cache, quotes):
    asked = (quotes.ids[:6], np.arange(6), quotes.labels["date"] == "2024-01-02", "date = '2024-01-02'")
    assert len({paper.fast(cache, F).theta.tobytes() for F in asked}) == 1
    assert paper.fast(cache, asked[0]).theta.tobytes() != paper.fast(cache, []).theta.tobytes()


def test_fast_prices_nothing(cache, quotes, monkeypatch):
    monkeypatch.setattr(paper.Heston, "linearize", None)
    assert np.isfinite(paper.fast(cache, quotes.ids[:5]).theta).all()


def test_one_relinearization_is_nearer_to_the_optimum_than_the_step(cache):
    F = "date < '2024-02-01'"
    optimum = np.array(list(so.calibrate(cache.quotes[cache.kept(F)], SMALL).parameters.values()))
    step, again = paper.fast(cache, F).theta, paper.relinearize(cache, F).theta
    assert np.abs(again - optimum).max() < 0.01 * np.abs(step - optimum).max()


def test_the_reference_is_found_with_the_model_of_the_cache(quotes):
    cache = paper.Cache(quotes, model=SMALL)
    # At the least-squares parameters of this pricer the score is rounding: no step is left.
    assert np.abs(paper.retrain(cache).theta - cache.theta_ref).max() < 1e-5
    with_ours = paper.Cache(quotes, model=SMALL, theta_ref=so.calibrate(quotes, so.Heston()).parameters)
    assert np.abs(with_ours.G).max() > 1e3 * np.abs(cache.G).max()


@pytest.mark.parametrize(
    "wrong", [{"ridge": -1.0}, {"shards": "no such label"}, {"shards": so.states.shard(paper.quotes("large"), "day")}]
)
def test_what_cannot_be_cached_is_refused(quotes, wrong):
    with pytest.raises(so.errors.UsageError):
        paper.Cache(quotes, model=SMALL, theta_ref=paper.TRUTH, **wrong)


@pytest.mark.parametrize("wrong", [[0, 0], [-1], [540]])
def test_rows_that_are_not_there_are_refused(cache, wrong):
    with pytest.raises(so.errors.UsageError):
        paper.fast(cache, wrong)


def test_an_unknown_id_is_refused(cache):
    with pytest.raises(so.errors.UnknownIdError):
        paper.fast(cache, ["no such id"])
