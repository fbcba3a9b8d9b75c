"""A tolerance lets a book forget by one step from the footprints and states it keeps, plain or a panel."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import strikeout as so
from strikeout.book.forget import Plan
from strikeout.book.version import errors_of
from strikeout.errors import NothingMeantError, RefusedError, UsageError
from strikeout.forgetting.evidence import Unsupported
from tests.book.behind import entered

TOLERANCE = 0.05


@pytest.fixture(scope="module")
def quotes() -> so.Quotes:
    """600 quotes on three dates, in turn."""
    found = so.synthetic.random_quotes(600, maturities=6, seed=7)
    dates = [f"2024-01-{2 + row % 3:02d}" for row in range(len(found))]
    return so.Quotes(ids=found.ids, contracts=found.contracts, observed=found.observed, labels={"date": dates})


@pytest.fixture(params=[None, "date", "auto"], ids=["plain", "panel", "auto"])
def panel(request) -> str | None:
    return request.param


@pytest.fixture
def book(tmp_path: Path, quotes: so.Quotes, panel: str | None):
    with so.Book.create(tmp_path / "a.book") as made:
        made.import_quotes(quotes)
        made.calibrate(panel=panel)
        yield made


@pytest.fixture
def fresh(panel):
    """How quotes are calibrated in memory as the book calibrates them."""
    return lambda quotes, **how: so.calibrate(quotes, so.Heston(), **{"panel": panel, **how})


def path_of(version) -> dict[str, float]:
    return {group: value for group, (value, _) in version.latent.items()}


def test_the_step_is_that_of_a_calibration_and_certified_as_near_as_was_asked(book, quotes, fresh):
    plan = book.plan_forget(ids=quotes.ids[:5], tolerance=TOLERANCE)
    alone = so.forget(fresh(quotes), ids=quotes.ids[:5], tolerance=TOLERANCE)
    assert alone.operator == plan.certificate.operator == "downdate"
    assert plan.after == alone.parameters
    assert {group: now for group, (_, now) in plan.latent.items()} == alone.latent
    assert replace(plan.certificate, reading=None) == alone.certificate
    assert so.verify(plan.certificate, quotes[5:]).holds
    assert Plan.from_bytes(plan.to_bytes()) == plan
    after = book.apply(plan).after
    assert path_of(after) == alone.latent
    assert after.errors == errors_of(alone.errors)
    assert dict(after.standard_errors) == dict(alone.standard_errors)
    assert book.verify().holds, book.verify().summary()


def test_a_date_is_struck_out_as_a_whole_and_restored(book, quotes, fresh):
    where = "date = '2024-01-03'"
    change = book.forget(where=where, tolerance=TOLERANCE)
    alone = so.forget(fresh(quotes), where=where, tolerance=TOLERANCE)
    assert (change.after.step is not None) == (alone.operator == "downdate")
    assert (dict(change.after.parameters), path_of(change.after)) == (alone.parameters, alone.latent)
    assert book.verify().holds, book.verify().summary()
    book.restore()
    assert path_of(book.status().version) == fresh(quotes).latent
    assert book.verify().holds, book.verify().summary()


def test_a_step_does_not_make_a_panel_a_plain_calibration(tmp_path, quotes):
    days = quotes.labels["date"].astype(str)
    two = quotes[(days == "2024-01-02") | (quotes.ids == quotes.ids[1])]
    with so.Book.create(tmp_path / "two.book") as book:
        book.import_quotes(two)
        assert book.calibrate().after.panel == "date"
        plan = book.plan_forget(ids=quotes.ids[1:2], tolerance=1.0)
        assert plan.path[0] == f"downdate passed over: {Unsupported.OTHER_KIND}"
        assert book.apply(plan).after.panel is None


def test_nothing_is_calibrated_and_in_a_plain_book_no_other_quote_is_read(book, quotes, fresh, panel, monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("the whole book was read or calibrated")

    with monkeypatch.context() as closed:
        if panel is None:
            closed.setattr(type(book.snapshot().store), "quotes", refuse)
        closed.setattr("strikeout.book.spec.fit", refuse)
        closed.setattr("strikeout.forgetting.recalibrate.calibrate_as", refuse)
        book._last = None
        change = book.forget(ids=quotes.ids[:5], tolerance=TOLERANCE)
    assert change.after.tolerance == TOLERANCE
    found = fresh(quotes[5:])
    assert change.after.state == found.state.digest()
    apart = [abs(change.after.parameters[n] - x) / found.standard_errors[n] for n, x in found.parameters.items()]
    assert max(apart) < TOLERANCE
    assert change.after.rmse == pytest.approx(found.rmse, rel=1e-2)
    assert book.verify().holds, book.verify().summary()


def test_steps_follow_each_other_from_one_reference_and_their_errors_do_not_add_up(book, quotes, fresh):
    for begin in (0, 5, 10):
        change = book.forget(ids=quotes.ids[begin : begin + 5], tolerance=TOLERANCE)
    at_once = so.forget(fresh(quotes), ids=quotes.ids[:15], tolerance=TOLERANCE)
    assert (dict(change.after.parameters), path_of(change.after)) == (at_once.parameters, at_once.latent)
    assert book.verify().holds, book.verify().summary()


def test_after_a_step_the_exact_verbs_are_those_of_a_fresh_start(book, quotes, fresh):
    change = book.forget(ids=quotes.ids[:5], tolerance=TOLERANCE)
    exact = book.forget(ids=quotes.ids[5:8])
    assert exact.after.step is None
    assert dict(exact.after.parameters) == fresh(quotes[8:]).parameters
    book.restore(exact.entry)
    back = book.restore(change.entry)
    assert dict(back.after.parameters) == fresh(quotes).parameters
    assert book.verify().holds, book.verify().summary()


def reason(plan: Plan) -> Unsupported | None:
    """Why no step was taken, read from the path of a plan."""
    clauses = {f"downdate passed over: {why}": why for why in Unsupported}
    return clauses.get(plan.path[0])


def test_what_one_step_cannot_replace_is_calibrated_and_the_path_names_the_reason(book, quotes, fresh):
    plan = book.plan_forget(ids=quotes.ids[:5], tolerance=1e-12)
    assert plan.certificate.operator == "recalibrate"
    change = book.apply(plan)
    assert change.path == plan.path
    assert change.after.step is None
    assert dict(change.after.parameters) == fresh(quotes[5:]).parameters


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"loss": "huber", "panel": None}, Unsupported.ROBUST_LOSS),
        ({"loss": "huber", "panel": "date"}, Unsupported.ROBUST_LOSS),
        ({"feller": "enforce", "panel": None}, Unsupported.FELLER),
        ({"feller": "enforce", "panel": "date"}, Unsupported.FELLER),
        ({"latent": "smoothed", "panel": "date"}, Unsupported.PRIOR),
    ],
)
def test_settings_that_one_step_ignores_are_named(tmp_path, quotes, settings, why):
    with so.Book.create(tmp_path / "s.book") as book:
        book.import_quotes(quotes)
        book.calibrate(starts=1, **settings)
        assert reason(book.plan_forget(ids=quotes.ids[5:8], tolerance=TOLERANCE)) is why


def test_a_book_without_footprints_is_calibrated_from_its_own_source(book, quotes):
    book.calibrate(through="moments", panel=None)
    plan = book.plan_forget(ids=quotes.ids[:5], tolerance=TOLERANCE)
    assert plan.certificate.operator == "resolve"
    assert (
        dict(book.apply(plan).after.parameters)
        == so.calibrate(so.states.moments_of(quotes[5:]), so.Heston()).parameters
    )


def test_footprints_that_are_missing_are_healed_through_their_shard(book, quotes):
    plan = book.plan_forget(ids=quotes.ids[[3, 300]], tolerance=TOLERANCE)
    with entered(book) as tx:
        tx.remove_shard_data("footprints", [0])
    again = book.plan_forget(ids=quotes.ids[[3, 300]], tolerance=TOLERANCE)
    assert again.after == plan.after
    book.apply(again)
    assert book.verify().holds, book.verify().summary()


def test_only_quotes_that_count_move_a_step(tmp_path, quotes, fresh, panel):
    with so.Book.create(tmp_path / "otm.book") as book:
        book.import_quotes(quotes)
        book.calibrate(select="otm", panel=panel)
        c = quotes.contracts
        counts = c.is_call == (c.strike >= c.forward)
        plan = book.plan_forget(ids=quotes.ids[:20], tolerance=TOLERANCE)
        alone = so.forget(fresh(quotes, select="otm"), ids=quotes.ids[:20], tolerance=TOLERANCE)
        assert plan.after == alone.parameters
        assert so.verify(plan.certificate, quotes[20:]).holds
        idle = quotes.ids[~counts][:2]
        assert reason(book.plan_forget(ids=idle, tolerance=TOLERANCE)) is Unsupported.NOT_COUNTED
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

    with records.session.store.writing() as tx:
        tx.put("calibration", tx.now.pages("calibration")[-1], canonical(replace(version, parameters=moved).to_plain()))
    assert {"PARAMETERS", "VERSIONS"} <= {check.name for check in book.verify().checks if check.holds is False}


def test_erasing_after_a_step_takes_the_certificate_that_names_its_reference(book, quotes):
    change = book.forget(ids=quotes.ids[:5], tolerance=TOLERANCE)
    assert "reference" in book.certificate(change.entry).state
    assert book.erase(ids=quotes.ids[:5]).residue == 0
    with pytest.raises(RefusedError) as refused:
        book.certificate(change.entry)
    assert refused.value.facts == {"entry": change.entry, "known": []}
    assert book.verify().holds, book.verify().summary()


def test_a_step_from_a_reference_that_was_fitted_to_an_erased_quote_is_solved_again(book, quotes, fresh):
    book.forget(ids=quotes.ids[:2], tolerance=TOLERANCE)
    assert book.status().version.step is not None
    done = book.erase(ids=quotes.ids[:1])
    version = book.status().version
    assert (version.entry, version.step) == (done.entry, None)
    assert version.parameters == fresh(quotes[2:]).parameters
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
        with pytest.raises(UsageError) as refused:
            book.plan_forget(ids=quotes.ids[:5], tolerance=tolerance)
        assert refused.value.arguments == {"tolerance"}
    with pytest.raises(NothingMeantError):
        book.plan_forget(where="strike < 0", tolerance=TOLERANCE)
