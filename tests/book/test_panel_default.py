"""A book of several quote dates is a panel unless it is asked not to be, and what it holds decides that alone."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner

import strikeout as so
from strikeout.book.forget import Plan
from strikeout.book.spec import CalibrationSpec
from strikeout.book.version import Version
from strikeout.cli import strikeout
from strikeout.errors import RefusedError, UsageError
from strikeout.quotes.quotes import join
from strikeout.store.sqlite_reading import SqliteReading
from tests.raising import raises

QUOTES = so.synthetic.panel_quotes(8, seed=3)
DATES = QUOTES.labels["date"]
FIRST = QUOTES[DATES == "2024-01-02"]
DAY, REST = "date = '2024-01-08'", QUOTES[DATES != "2024-01-08"]
LATER = "date > '2024-01-02'"
HUGE = QUOTES.with_observed(np.where(DATES == "2024-01-05", 1e3, 1.0) * QUOTES.observed)


@pytest.fixture
def book(tmp_path):
    with so.Book.create(tmp_path / "a.book", who="ann") as made:
        made.import_quotes(QUOTES)
        made.calibrate()
        yield made


@pytest.fixture
def anew(tmp_path):
    """Books that never held anything else, each made and asked as a user would."""
    made = []

    def book_of(quotes, **asked):
        made.append(so.Book.create(tmp_path / f"never{len(made)}.book"))
        made[-1].import_quotes(quotes)
        made[-1].calibrate(**asked)
        return made[-1]

    yield book_of
    for each in made:
        each.close()


def knows(book):
    """What a book keeps of its calibration, but for when it was made and why it went the way it did."""
    plain = book.status().version.to_plain()
    options = {name: value for name, value in plain["options"].items() if name != "source"}
    return {**{name: plain[name] for name in plain if name != "entry"}, "options": options}


def with_dates(quotes, dates):
    labels = {**quotes.labels, "date": np.asarray(dates)}
    return so.Quotes(ids=quotes.ids, contracts=quotes.contracts, observed=quotes.observed, labels=labels)


def test_a_book_of_several_dates_is_a_panel_and_one_of_a_single_date_is_not(book, anew):
    panel = so.calibrate(QUOTES, so.Heston(), panel="date")
    version = book.status().version
    assert dict(version.parameters) == panel.parameters
    assert {group: value for group, (value, _) in version.latent.items()} == panel.latent
    assert (version.panel, version.options["panel"], version.kind["groups"]) == ("date", "auto", 8)
    one = anew(FIRST).status().version
    assert dict(one.parameters) == so.calibrate(FIRST, so.Heston()).parameters
    assert (one.panel, one.kind, one.options["panel"]) == (None, None, "auto")


def test_calibrate_itself_is_plain_where_nobody_says_otherwise():
    assert isinstance(so.calibrate(QUOTES, so.Heston()), so.results.Calibration)
    left_open = so.calibrate(QUOTES, so.Heston(), panel="auto")
    assert left_open.parameters == so.calibrate(QUOTES, so.Heston(), panel="date").parameters
    assert left_open.settings.panel == "auto"


def test_one_value_is_had_for_the_asking(anew):
    plain = anew(QUOTES, panel=None)
    assert dict(plain.status().version.parameters) == so.calibrate(QUOTES, so.Heston()).parameters
    plain.calibrate()  # as the last time
    assert plain.status().version.panel is None


@pytest.mark.parametrize(
    ("quotes", "asked", "why"),
    [
        (QUOTES, {"loss": "huber"}, "auto keeps one value under a huber loss"),
        (QUOTES, {"fixed": {"initial_variance": 0.05}}, "initial_variance is fixed"),
        (with_dates(QUOTES, np.where(np.arange(120) < 3, "", DATES)), {}, "3 of 120 quotes have no date"),
        (QUOTES[::5], {}, None),  # 24 quotes, two for each of 12 parameters: enough
        (QUOTES[::5][1:], {}, "23 quotes are fewer than 2 for each of the 12 parameters of a panel"),
        (QUOTES[::3], {"select": "otm"}, "20 quotes out of the money are fewer than 2 for each of the 12 parameters"),
    ],
    ids=["loss", "fixed", "undated", "enough", "few", "few out of the money"],
)
def test_a_book_that_can_be_no_panel_is_plain_and_says_why(anew, quotes, asked, why):
    version = anew(quotes, **asked).status().version
    assert bool(version.latent) == (why is None)
    told = version.latent_facts(one_value="-")
    assert told[0][0] == "initial_variance"
    assert why is None or (version.kind["label"] is None and f"one value for 8 dates: {why}" in told[0][1])


def test_a_model_without_a_latent_parameter_has_nothing_to_decide(anew):
    version = anew(QUOTES, model=so.BlackScholes()).status().version
    assert version.kind is None
    assert version.latent_facts(one_value="-") == []


def test_no_price_can_decide_whether_it_is_a_panel(anew):
    """A bad feed moves parameters; it cannot turn five of them into hundreds, nor back."""
    for asked in ({}, {"select": "otm"}):
        assert anew(HUGE[::2], **asked).status().version.panel == anew(QUOTES[::2], **asked).status().version.panel


def test_forgetting_all_dates_but_one_leaves_a_plain_book_that_never_held_them(book, anew):
    before = knows(book)
    plan = book.plan_forget(where=LATER, reason="bad-feed")
    assert Plan.from_bytes(plan.to_bytes()) == plan
    assert "initial_variance: one value from here on" in plan.path
    assert "initial_variance          -  " in plan.summary()
    change = book.apply(plan)
    assert knows(book) == knows(anew(FIRST))
    assert change.latent_moves == ["until now one for each of 8 dates"]
    assert so.verify(change.certificate, FIRST).holds
    assert not so.verify(change.certificate, QUOTES).holds
    assert book.verify().holds
    back = book.restore()
    assert knows(book) == before
    assert back.latent_moves == ["until now one value"]
    assert book.verify().holds


def test_learning_a_second_date_makes_a_panel_as_if_it_had_been_there(anew):
    book = anew(FIRST)
    book.learn(QUOTES[DATES == "2024-01-03"])
    both = QUOTES[DATES <= "2024-01-03"]
    assert len(book.status().version.latent) == 2
    assert knows(book) == knows(anew(both))
    gone = book.forget(where="date = '2024-01-02'")
    assert knows(book) == knows(anew(QUOTES[DATES == "2024-01-03"]))
    book.restore(gone.entry)
    assert knows(book) == knows(anew(both))


def test_a_window_of_one_date_is_plain_and_one_of_two_is_a_panel(anew):
    book = anew(QUOTES[DATES <= "2024-01-04"])
    book.roll(QUOTES[DATES == "2024-01-05"], window=1)
    assert knows(book) == knows(anew(QUOTES[DATES == "2024-01-05"]))
    book.roll(QUOTES[DATES == "2024-01-08"], window=2)
    assert knows(book) == knows(anew(QUOTES[np.isin(DATES, ["2024-01-05", "2024-01-08"])]))


def test_erasing_all_dates_but_one_leaves_a_plain_book_and_no_trace(book, anew):
    done = book.erase(where=LATER, reason="licence")
    assert done.residue == 0
    assert knows(book) == knows(anew(FIRST))
    assert not book.snapshot().versions[0].latent
    assert book.verify().holds


def test_striking_out_the_quotes_without_a_date_makes_a_panel(anew):
    undated = with_dates(FIRST, np.full(len(FIRST), ""))
    rest = QUOTES[DATES != "2024-01-02"]
    book = anew(join(rest, undated))
    assert book.status().version.panel is None
    plan = book.plan_forget(ids=undated.ids)
    assert "initial_variance: one for each of 7 dates from here on" in plan.path
    change = book.apply(plan)
    assert knows(book) == knows(anew(rest))
    assert so.verify(change.certificate, rest).holds
    assert change.certificate.objective["panel"]["label"] == "date"


def test_a_book_through_moments_is_plain_and_stays_so(anew):
    quotes = so.paper.quotes("small")  # one variance for all its dates, so that a plain calibration is determined
    rest = quotes[quotes.labels["date"] != "2024-01-08"]
    book = anew(quotes, through="moments")
    assert "initial_variance" in so.preview(book.calibration(), where=DAY).parameters
    book.forget(where=DAY)
    found = so.calibrate(so.states.moments_of(rest), so.Heston(), panel="auto")
    assert dict(book.status().version.parameters) == found.parameters
    assert knows(book) == knows(anew(rest, through="moments"))
    book.restore()
    assert knows(book) == knows(anew(quotes, through="moments"))
    book.calibrate(through="quotes")
    assert book.status().version.panel == "date"


def test_a_step_does_not_lead_from_a_panel_to_a_plain_calibration():
    panel = so.calibrate(QUOTES, so.Heston(), panel="auto")
    with raises(UsageError, mentions={"operator", "panel"}):
        so.forget(panel, where=LATER, operator="downdate")
    near = so.forget(panel, where=LATER, tolerance=0.1)
    assert near.operator == "recalibrate"
    assert near.parameters == so.calibrate(FIRST, so.Heston()).parameters
    look = so.preview(panel, where=LATER)
    assert (look.operator, look.parameters, look.latent) == ("recalibrate", near.parameters, {})
    assert so.restore(near) is panel
    assert so.learn(near.calibration, QUOTES[DATES > "2024-01-02"]).latent == panel.latent
    rolled = so.roll(near.calibration, QUOTES[DATES == "2024-01-03"])
    assert rolled.latent.keys() == {"2024-01-02", "2024-01-03"}


def test_a_step_within_a_panel_that_was_left_open_is_that_of_one_that_was_asked_for():
    asked, left_open = (so.calibrate(QUOTES, so.Heston(), panel=word) for word in ("date", "auto"))
    for how in ({"operator": "downdate"}, {"tolerance": 0.1}, {}):
        one, other = so.forget(asked, where=DAY, **how), so.forget(left_open, where=DAY, **how)
        assert (one.parameters, one.latent, one.operator) == (other.parameters, other.latent, other.operator)
        assert one.certificate == other.certificate
    assert so.preview(left_open, where=DAY).latent.keys() == so.calibrate(REST, so.Heston(), panel="date").latent.keys()


def test_influence_stays_among_the_parameters_of_the_calibration(book):
    by_hand = so.influence(so.calibrate(QUOTES, so.Heston(), panel="date"), "date", confirm=2)
    found = so.influence(book.calibration(), "date", confirm=2)
    assert found["confirmed_correlation"].tolist()[:2] == by_hand["confirmed_correlation"].tolist()[:2]
    two = so.calibrate(QUOTES[DATES <= "2024-01-03"], so.Heston(), panel="auto")
    assert np.isfinite(so.influence(two, "date", confirm=1)["confirmed_correlation"][0])  # one date is left, as a panel


def test_a_version_says_what_was_asked_and_what_was_decided_and_comes_back_from_its_bytes(book):
    version = book.status().version
    assert Version.from_plain(json.loads(json.dumps(version.to_plain()))) == version
    assert CalibrationSpec.from_plain(version.options).settings.panel == "auto"
    (name, told), (_, cost) = version.latent_facts(one_value="panel=None")
    assert name == "initial_variance"
    assert told.endswith("one for each of 8 dates (the default for several quote dates; panel=None for one value)")
    assert cost == "one value for all, the others as they are, would raise the misfit about 393 times"
    assert told in book.summary()
    assert cost in book.summary()


def test_what_one_value_would_cost_is_what_it_costs():
    from strikeout.calibration.latent_test import one_value

    panel = so.calibrate(QUOTES, so.Heston(), panel="date")
    assert one_value(panel).factor == pytest.approx(so.calibrate(QUOTES, so.Heston()).rmse / panel.rmse, rel=0.01)
    constant = so.paper.quotes("small")
    same = one_value(so.calibrate(constant, so.Heston(), panel="date"))
    assert same.cost() == "one value for all would fit as well, up to noise"
    assert one_value(so.calibrate(FIRST, so.Heston(), panel="date")) is None


def test_an_older_book_stays_as_it_was_asked(book):
    """Versions of before have no word of a panel in their options, and mean a plain calibration."""
    plain = {**CalibrationSpec.from_plain(book.status().version.options).to_plain()}
    del plain["panel"]
    assert isinstance(CalibrationSpec.from_plain(plain).calibrate(QUOTES), so.results.Calibration)


def test_a_panel_of_one_date_that_was_asked_for_says_nothing_of_one_value(anew):
    version = anew(FIRST, panel="date").status().version
    assert [told for _, told in version.latent_facts(one_value="-")] == [
        "0.0599835 to 0.0599835, one for each of 1 date"
    ]


def test_books_that_are_not_alike_are_not_compared(book, anew):
    with pytest.raises(RefusedError, match=r"\(.*book with heston and a latent parameter for every date, .* heston\)"):
        book.compare(anew(QUOTES, panel=None))


def run(*words, code=0):
    done = CliRunner().invoke(strikeout, [*map(str, words)])
    assert done.exit_code == code, done.output
    return done


def test_the_command_line_says_what_was_decided_and_how_to_have_it_otherwise(book, tmp_path):
    path = book.path
    said = "one for each of 8 dates (the default for several quote dates; --panel none for one value)"
    for command in ("status", "summary", "calibrate"):
        assert said in run(command, path).stdout, command
        assert "would raise the misfit about 393 times" in run(command, path).stdout
    told = json.loads(run("status", path, "--json").stdout)["calibration"]
    assert "initial_variance" not in told["parameters"]
    assert len(told["latent"]) == 8
    expected = {"asked": "auto", "label": "date", "latent": "initial_variance", "groups": 8}
    assert told["panel"].items() >= expected.items()
    assert told["panel"]["one_value"]["misfit_times"] == pytest.approx(393, abs=1)
    plain = json.loads(run("calibrate", path, "--panel", "none", "--json", code=3).stdout)
    assert (plain["panel"], len(plain["parameters"])) == (None, 5)
    file = tmp_path / "quotes.csv"
    so.write_quotes(QUOTES, file)
    assert "initial_variance" in json.loads(run("calibrate", file, "--json", code=3).stdout)["parameters"]
    assert json.loads(run("calibrate", file, "--panel", "auto", "--json").stdout)["panel"] == "date"


def test_a_plan_shows_the_path_before_and_after_and_the_day_that_goes(book):
    path = book.path
    shown = run("forget", path, "--where", DAY).stdout
    assert "latent   2024-01-08 is removed as a whole, and initial_variance 0.0443918 with it" in shown
    assert "latent   7 dates stay: initial_variance moves most on " in shown
    assert "2024-01-08 was removed as a whole, and initial_variance 0.0443918 with it" in run("apply", path).stdout
    assert "2024-01-08 was added, with initial_variance 0.0443918" in run("restore", path, "--last").stdout
    plan = json.loads(run("forget", path, "--where", DAY, "--json").stdout)
    fresh = so.calibrate(REST, so.Heston(), panel="date").latent
    assert plan["dropped"] == ["2024-01-08"]
    assert plan["latent"]["after"] == {**fresh, "2024-01-08": None}
    assert plan["latent"]["before"] == so.calibrate(QUOTES, so.Heston(), panel="date").latent
    look = run("forget", path, "--where", DAY, "--preview").stdout
    assert "2024-01-08 is removed as a whole" in look
    looked = json.loads(run("forget", path, "--where", DAY, "--preview", "--json").stdout)
    assert (looked["dropped"], looked["latent"].keys()) == (["2024-01-08"], fresh.keys())
    crossing = run("forget", path, "--where", LATER, "--preview").stdout
    assert "initial_variance          -  " in crossing


def test_a_panel_of_a_model_that_has_none_is_answered_with_an_option(tmp_path):
    file = tmp_path / "quotes.csv"
    so.write_quotes(QUOTES, file)
    said = run("calibrate", file, "--panel", "date", "--model", "sabr", code=2).stderr
    assert "Leave --panel out, or take a model with an initial variance, such as --model heston." in said
    assert "attribute" not in said


def test_a_real_book_of_derived_forwards_goes_across_the_line_and_back(shared_data, anew):
    """Two days of ether options, whose forwards are found by parity from whatever the book holds."""
    whole = so.inspect_quotes(shared_data("chains/panel_okx_eth_2026-07_08.parquet")).quotes
    dates = whole.labels["date"].astype(str)
    two, one = whole[np.isin(dates, ["2026-07-06", "2026-07-07"])], whole[dates == "2026-07-06"]
    book = anew(two, select="otm")
    before = knows(book)
    assert len(book.status().version.latent) == 2
    some = one.ids[::40]  # of the day that stays too, so that forwards are found anew
    struck = book.forget(ids=[*two.ids[np.isin(two.ids, one.ids, invert=True)], *some])
    retained = one.without(some)
    assert knows(book) == knows(anew(retained, select="otm"))
    assert so.verify(struck.certificate, retained).holds
    book.restore()
    assert knows(book) == before
    assert book.verify().holds


def two_days():
    """Two dates with quotes enough for each, and which are of the first."""
    quotes = so.synthetic.random_quotes(1200, maturities=6, seed=3)
    is_first = np.arange(1200) < 600
    return with_dates(quotes, np.where(is_first, "2024-01-02", "2024-01-03")), is_first


def test_a_book_through_moments_that_gets_a_second_date_says_why_it_stays_plain(tmp_path):
    days, is_first = two_days()
    with so.Book.create(tmp_path / "a.book") as book:
        book.import_quotes(days[is_first])
        assert book.calibrate(through="moments").after.kind is None  # one date: nothing to decide
        learnt = book.learn(days[~is_first]).after
        said = "moments do not record dates; calibrate it through quotes for one per date"
        assert learnt.kind == {"label": None, "latent": "initial_variance", "why": said}
        assert learnt.latent_facts(one_value="-") == [("initial_variance", f"one value for several dates: {said}")]
        assert learnt.to_dict()["panel"] == {"asked": "auto", **learnt.kind}
        assert Version.from_plain(learnt.to_plain()) == learnt
        assert book.calibrate(through="moments").after.kind == learnt.kind  # as if it had come at once
        gone = book.forget(ids=days.ids[~is_first])
        assert gone.after.kind is None
        assert book.restore().after.kind == learnt.kind
        assert book.roll(window=1).after.kind is None
        assert book.verify().holds, book.verify().summary()


def test_of_moments_with_no_date_to_tell_apart_nothing_is_said(tmp_path):
    days, _ = two_days()
    with so.Book.create(tmp_path / "a.book") as book:
        book.import_quotes(days)
        assert book.calibrate(through="moments", panel=None).after.kind is None
        assert book.calibrate(through="moments", fixed={"initial_variance": 0.06}).after.kind is None
        assert book.calibrate(so.BlackScholes(), through="moments").after.kind is None


def test_a_learn_through_moments_reads_two_quotes_of_the_book_and_no_other(tmp_path, monkeypatch):
    days, is_first = two_days()
    with so.Book.create(tmp_path / "a.book") as book:
        book.import_quotes(days[is_first])
        book.calibrate(through="moments")
        read, true = [], SqliteReading.named
        monkeypatch.setattr(SqliteReading, "named", lambda self, ids: read.extend(ids) or true(self, ids))
        monkeypatch.setattr(SqliteReading, "quotes", lambda *_, **__: pytest.fail("the whole book was read"))
        assert book.learn(days[~is_first]).after.kind is not None
        assert read == [days.ids[is_first][0], days.ids[~is_first][-1]]
