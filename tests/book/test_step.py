"""A tolerance lets a book forget by one step from the footprints and states it keeps; no other quote is read."""

from __future__ import annotations

from pathlib import Path

import pytest

import strikeout as so
from strikeout.book.plan import Plan
from strikeout.errors import RefusedError, UsageError
from strikeout.forgetting.evidence import Unsupported
from tests.book.behind import entered

TOLERANCE = 0.05


@pytest.fixture(scope="module")
def quotes() -> so.Quotes:
    return so.synthetic.random_quotes(600, maturities=6, seed=7)


@pytest.fixture
def book(tmp_path: Path, quotes: so.Quotes):
    with so.Book.create(tmp_path / "a.book") as made:
        made.import_quotes(quotes)
        made.calibrate()
        yield made


def test_the_step_is_that_of_a_calibration_and_certified_as_near_as_was_asked(book, quotes):
    plan = book.plan_forget(ids=quotes.ids[:5], tolerance=TOLERANCE)
    alone = so.forget(so.calibrate(quotes, so.Heston()), ids=quotes.ids[:5], tolerance=TOLERANCE)
    assert plan.after == alone.parameters
    assert plan.certificate == alone.certificate
    assert plan.path[0].startswith("downdate: one step misses the optimum by at most")
    assert so.verify(plan.certificate, quotes[5:]).holds
    assert Plan.from_bytes(plan.to_bytes()) == plan


def test_no_other_quote_is_read_and_nothing_is_calibrated(book, quotes, monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("the whole book was read or calibrated")

    with monkeypatch.context() as closed:
        closed.setattr(type(book.snapshot().store), "quotes", refuse)
        closed.setattr("strikeout.book.spec.fit", refuse)
        closed.setattr("strikeout.forgetting.recalibrate.calibrate_as", refuse)
        book._last = None
        change = book.forget(ids=quotes.ids[:5], tolerance=TOLERANCE)
    assert change.after.tolerance == TOLERANCE
    fresh = so.calibrate(quotes[5:], so.Heston())
    assert change.after.state == fresh.state.digest()
    apart = [abs(change.after.parameters[n] - x) / fresh.standard_errors[n] for n, x in fresh.parameters.items()]
    assert max(apart) < TOLERANCE
    assert change.after.rmse == pytest.approx(fresh.rmse, rel=1e-3)
    assert book.verify().holds, book.verify().summary()


def test_steps_follow_each_other_from_one_reference_and_their_errors_do_not_add_up(book, quotes):
    for begin in (0, 5, 10):
        change = book.forget(ids=quotes.ids[begin : begin + 5], tolerance=TOLERANCE)
    at_once = so.forget(so.calibrate(quotes, so.Heston()), ids=quotes.ids[:15], tolerance=TOLERANCE)
    assert dict(change.after.parameters) == at_once.parameters
    assert book.verify().holds, book.verify().summary()


def test_after_a_step_the_exact_verbs_are_those_of_a_fresh_start(book, quotes):
    change = book.forget(ids=quotes.ids[:5], tolerance=TOLERANCE)
    exact = book.forget(ids=quotes.ids[5:8])
    assert exact.after.step is None
    assert dict(exact.after.parameters) == so.calibrate(quotes[8:], so.Heston()).parameters
    book.restore(exact.entry)
    back = book.restore(change.entry)
    assert dict(back.after.parameters) == so.calibrate(quotes, so.Heston()).parameters
    assert book.verify().holds, book.verify().summary()


def test_what_one_step_cannot_stand_for_goes_the_exact_road_and_says_why(book, quotes):
    plan = book.plan_forget(ids=quotes.ids[:5], tolerance=1e-12)
    assert plan.path[0].startswith("downdate passed over: one step misses the optimum by at most")
    change = book.apply(plan)
    assert change.path == plan.path
    assert change.after.step is None
    assert dict(change.after.parameters) == so.calibrate(quotes[5:], so.Heston()).parameters
    book.calibrate(loss="huber")
    assert "a robust loss" in book.plan_forget(ids=quotes.ids[5:8], tolerance=TOLERANCE).path[0]
    book.calibrate(loss="squared", feller="enforce")
    assert "Feller" in book.plan_forget(ids=quotes.ids[5:8], tolerance=TOLERANCE).path[0]


def test_a_book_without_footprints_goes_its_own_road(book, quotes):
    book.calibrate(through="moments")
    plan = book.plan_forget(ids=quotes.ids[:5], tolerance=TOLERANCE)
    assert plan.path[0].startswith("downdate passed over: the book keeps no footprints")
    assert dict(book.apply(plan).after.parameters) == so.calibrate(so.moments_of(quotes[5:]), so.Heston()).parameters


def test_footprints_that_are_missing_are_healed_through_their_shard(book, quotes):
    plan = book.plan_forget(ids=quotes.ids[[3, 300]], tolerance=TOLERANCE)
    with entered(book) as tx:
        tx.remove_shard_data("footprints", [0])
    rebuilt = book.plan_forget(ids=quotes.ids[[3, 300]], tolerance=TOLERANCE)
    assert rebuilt.after == plan.after
    assert rebuilt.path[0].endswith("; 1 of the shards were rebuilt, because footprints were missing")
    book.apply(rebuilt)
    assert book.verify().holds, book.verify().summary()


def test_only_quotes_that_count_move_a_step(tmp_path, quotes):
    with so.Book.create(tmp_path / "otm.book") as book:
        book.import_quotes(quotes)
        book.calibrate(select="otm")
        c = quotes.contracts
        counts = c.is_call == (c.strike >= c.forward)
        plan = book.plan_forget(ids=quotes.ids[:20], tolerance=TOLERANCE)
        alone = so.forget(so.calibrate(quotes, so.Heston(), select="otm"), ids=quotes.ids[:20], tolerance=TOLERANCE)
        assert plan.after == alone.parameters
        assert so.verify(plan.certificate, quotes[20:]).holds
        idle = quotes.ids[~counts][:2]
        assert "none of these quotes counts" in book.plan_forget(ids=idle, tolerance=TOLERANCE).path[0]
        book.apply(plan)
        assert book.verify().holds, book.verify().summary()


def test_a_step_keeps_the_form_of_the_model_where_fewer_quotes_would_suit_another(tmp_path):
    """1,600 quotes on 100 expiries are priced by expiry; one fewer, and a calibration takes panels of ln T."""
    edge = so.synthetic.random_quotes(1600, maturities=100, seed=2)
    with so.Book.create(tmp_path / "edge.book") as book:
        book.import_quotes(edge)
        assert "shared" in book.calibrate().after.model
        step = book.forget(ids=edge.ids[:1], tolerance=TOLERANCE).after
        assert (step.tolerance, "shared" in step.model) == (TOLERANCE, True)
        assert book.verify().holds, book.verify().summary()
        exact = book.forget(ids=edge.ids[1:2]).after
        assert "scattered" in exact.model
        assert dict(exact.parameters) == so.calibrate(edge[2:], so.Heston()).parameters
        assert book.verify().holds, book.verify().summary()


def test_a_step_altered_with_the_right_tools_is_found(book, quotes):
    book.forget(ids=quotes.ids[:5], tolerance=TOLERANCE)
    records = book.snapshot()
    version = records.version
    moved = {name: value * (1 + 2**-40) for name, value in version.parameters.items()}
    from dataclasses import replace

    from strikeout.assurance.canonical import canonical

    with records.store.writing() as tx:
        tx.put("calibration", tx.pages("calibration")[-1], canonical(replace(version, parameters=moved).to_plain()))
    assert "PARAMETERS: The parameters are not one step from the stored state." in book.verify().reasons


def test_erasing_after_a_step_takes_the_certificate_that_names_its_reference(book, quotes):
    change = book.forget(ids=quotes.ids[:5], tolerance=TOLERANCE)
    assert "reference" in book.certificate(change.entry).state
    assert book.erase(ids=quotes.ids[:5]).residue == 0
    with pytest.raises(RefusedError, match="erasure"):
        book.certificate(change.entry)
    assert book.verify().holds, book.verify().summary()


def test_a_step_from_a_reference_that_knew_an_erased_quote_is_solved_again(book, quotes):
    book.forget(ids=quotes.ids[:2], tolerance=TOLERANCE)
    assert book.status().version.step is not None
    done = book.erase(ids=quotes.ids[:1])
    version = book.status().version
    assert (version.entry, version.step) == (done.entry, None)
    assert version.parameters == so.calibrate(quotes[2:], so.Heston()).parameters
    assert done.residue == 0
    assert book.verify().holds, book.verify().summary()


def test_a_step_does_not_decide_whether_what_is_left_is_a_panel(tmp_path, quotes):
    few = quotes[:40]  # fewer than 2 for each of the parameters that a panel of 20 dates would have
    dates = [f"2024-01-{2 + row % 20:02d}" for row in range(len(few))]
    dated = so.Quotes(ids=few.ids, contracts=few.contracts, observed=few.observed, labels={"date": dates})
    with so.Book.create(tmp_path / "dated.book") as book:
        book.import_quotes(dated)
        assert book.calibrate().after.panel is None
        plan = book.plan_forget(ids=few.ids[:1], tolerance=1.0)
        assert plan.path[0] == f"downdate passed over: {Unsupported.UNDECIDED}"


def test_a_tolerance_that_is_none_is_refused(book, quotes):
    for tolerance in (0.0, -1.0, float("nan")):
        with pytest.raises(UsageError, match="standard errors above zero"):
            book.plan_forget(ids=quotes.ids[:5], tolerance=tolerance)
    with pytest.raises(RefusedError, match="nothing to forget"):
        book.plan_forget(where="strike < 0", tolerance=TOLERANCE)
