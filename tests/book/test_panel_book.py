"""A book that is calibrated as a panel: the path is kept, every verb knows it, and an erasure takes it away."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner

import strikeout as so
from strikeout.book.spec import CalibrationSpec
from strikeout.book.version import Version
from strikeout.cli import strikeout
from strikeout.errors import UsageError
from tests.raising import raises

QUOTES = so.synthetic.panel_quotes(8, seed=3)
DAY = "date = '2024-01-08'"
REST = QUOTES[QUOTES.labels["date"] != "2024-01-08"]


@pytest.fixture
def book(tmp_path):
    with so.Book.create(tmp_path / "a.book", who="ann") as made:
        made.import_quotes(QUOTES)
        made.calibrate(panel="date")
        yield made


def fresh(quotes):
    return so.calibrate(quotes, so.Heston(), panel="date")


def is_fresh(book, quotes):
    """Whether the book keeps what a panel of these quotes alone gives, bit for bit."""
    version, never = book.status().version, fresh(quotes)
    path = {group: value for group, (value, _) in version.latent.items()}
    return (
        dict(version.parameters) == never.parameters
        and path == never.latent
        and version.state == never.state.digest()
        and book.verify().holds
    )


def test_a_book_keeps_the_path_and_finds_the_panel_again(book):
    assert is_fresh(book, QUOTES)
    found = book.calibration()
    assert isinstance(found, so.results.Calibration)
    assert found.to_dict() == fresh(QUOTES).to_dict()
    with so.Book.open(book.path) as again:
        assert is_fresh(again, QUOTES)
        assert "one for each of 8 dates" in again.summary()


def test_a_state_of_a_group_that_differs_is_found(book):
    kept = book.snapshot().linearization
    assert {group: state.digest() for group, state in kept.start.blocks.items()} == {
        group: state.digest() for group, state in fresh(QUOTES).state.blocks.items()
    }
    first, *others = kept.start.blocks.items()
    other = replace(kept, start=so.states.System(dict([(first[0], others[0][1]), *others]), kept.latent))
    with book.snapshot().session.store.writing() as tx:
        tx.put("state", "linearization", other.to_bytes())
    assert {check.name for check in book.verify().checks if check.holds is False} == {"CONTENTS", "STATES"}


def test_an_erasure_takes_the_old_states_of_groups_along(book):
    before = book.snapshot().linearization.start.blocks["2024-01-08"].words.tobytes()
    assert book.erase(where=DAY).residue == 0
    assert before[:24] not in b"".join(path.read_bytes() for path in book.snapshot().session.store.files())
    assert is_fresh(book, REST)
    book.calibrate(panel=None, starts=4)
    assert book.status().groups is None


def test_a_group_at_the_boundary_of_the_model_keeps_footprints_and_is_not_stepped(tmp_path):
    spoiled = QUOTES.observed.copy()
    day = QUOTES.labels["date"] == "2024-01-08"
    c = QUOTES.contracts
    spoiled[day] = np.maximum(c.discount * np.where(c.is_call, 1, -1) * (c.forward - c.strike), 0.0)[day]
    flat = so.Quotes(ids=QUOTES.ids, contracts=c, observed=spoiled, labels=QUOTES.labels)
    with so.Book.create(tmp_path / "flat.book") as book:
        book.import_quotes(flat)
        book.calibrate(panel="date", fixed={"mean_reversion": 2.0, "long_variance": 0.06})
        linearization = book.snapshot().linearization
        assert "2024-01-08" in linearization.schemas
        assert "2024-01-08" not in linearization.second_order
        assert book.plan_forget(ids=flat.ids[:1], tolerance=1.0).certificate.operator == "recalibrate"
        book.forget(ids=flat.ids[:1])
        assert book.verify().holds, book.verify().summary()


def test_a_version_comes_back_from_its_bytes(book):
    version = book.status().version
    plain = json.loads(json.dumps(version.to_plain()))
    assert Version.from_plain(plain) == version
    assert CalibrationSpec.from_plain(plain["options"]).settings.panel == "date"


def test_a_plain_book_says_nothing_of_panels(tmp_path):
    """So that what older versions of strikeout wrote has the digests it always had."""
    with so.Book.create(tmp_path / "b.book") as plain:
        plain.import_quotes(so.paper.quotes("small"))
        written = plain.calibrate(panel=None).after.to_plain()
        assert "latent" not in written
        assert "kind" not in written
        assert "panel" not in written["options"]


def test_a_day_is_forgotten_by_plan_and_restored(book):
    plan = book.plan_forget(where=DAY, reason="bad-feed")
    assert plan.count == 15
    change = book.apply(plan)
    assert is_fresh(book, REST)
    assert so.verify(change.certificate, REST).holds
    assert "2024-01-08" not in change.after.latent
    book.restore()
    assert is_fresh(book, QUOTES)


def test_a_window_rolls_and_quotes_are_learnt(tmp_path):
    days = QUOTES.labels["day"]
    with so.Book.create(tmp_path / "w.book") as book:
        book.import_quotes(QUOTES[days < 6])
        book.calibrate(panel="date")
        book.roll(QUOTES[days == 6], window=6)
        assert is_fresh(book, QUOTES[(days > 0) & (days <= 6)])
        book.learn(QUOTES[days == 7])
        assert is_fresh(book, QUOTES[days > 0])
        book.calibrate()  # as it was the last time: a panel
        assert is_fresh(book, QUOTES[days > 0])
        book.calibrate(starts=4)  # what is not said stays as it was
        assert book.status().version.options["panel"] == "date"
        book.calibrate(starts=4, fresh=True)  # said anew: what is not said is at its default, and a panel is
        assert book.status().version.options["panel"] == "auto"
        assert is_fresh(book, QUOTES[days > 0])
        book.calibrate(panel=None)
        assert not book.status().version.latent


def test_an_erased_day_leaves_no_value_of_its_own_in_any_version(book):
    gone = book.status().version.latent["2024-01-08"][0]
    told = book.plan_erase(where=DAY)
    assert any("latent path" in text for text in told.gone)
    done = book.erase(where=DAY, reason="error")
    assert done.residue == 0
    assert is_fresh(book, REST)
    written = b"".join(
        book.snapshot().store.page("calibration", name) for name in book.snapshot().store.pages("calibration")
    )
    assert gone.hex().encode() not in written
    assert b"2024-01-08" not in written
    assert not book.snapshot().versions[0].latent
    assert book.snapshot().versions[0].parameters


def test_a_path_that_was_changed_behind_the_ledger_is_found(book):
    def alter(data):
        plain = json.loads(data)
        group, value, error = plain["latent"][3]
        plain["latent"][3] = [group, np.nextafter(float.fromhex(value), 1.0).item().hex(), error]
        return json.dumps(plain).encode()

    with book.snapshot().session.store.writing() as store:
        name = store.now.pages("calibration")[-1]
        store.put("calibration", name, alter(store.now.page("calibration", name)))
    reasons = book.verify().reasons
    assert any("latent" in reason for reason in reasons), reasons


def test_a_book_of_moments_has_no_panels(tmp_path):
    with so.Book.create(tmp_path / "m.book") as book:
        book.import_quotes(QUOTES)
        with raises(UsageError, mentions={"panel", "through"}):
            book.calibrate(panel="date", through="moments")


def test_exports_tell_the_path_and_quantlib_gets_the_last_day(book, tmp_path):
    panel = fresh(QUOTES)
    told = json.loads(book.export(tmp_path / "a.json").read_text())
    assert told["latent"] == panel.latent
    assert told["latent_standard_errors"] == panel.latent_standard_errors
    lines = book.export(tmp_path / "a.py").read_text()
    assert f"{panel.latent['2024-01-11']!r},  # initial variance of 2024-01-11, v0" in lines


def test_two_books_of_the_same_quotes_are_the_same(book, tmp_path):
    with so.Book.create(tmp_path / "b.book") as other:
        other.import_quotes(QUOTES)
        other.calibrate(panel="date")
        compared = book.compare(other)
        assert compared.is_same_state
        assert compared.is_same_parameters


def test_the_command_line_works_on_a_book_that_is_a_panel(tmp_path):
    def run(*words):
        done = CliRunner().invoke(strikeout, [*map(str, words)])
        assert done.exit_code == 0, done.output
        return done.stdout

    path, file = tmp_path / "c.book", tmp_path / "quotes.csv"
    so.write_quotes(QUOTES, file)
    run("init", path)
    run("import", path, file)
    assert "one for each of 8 dates" in run("calibrate", path, "--panel", "date")
    assert "2024-01-08" in run("influence", path, "--by", "date")
    assert "looked by  downdate" in run("forget", path, "--where", DAY, "--preview")
    told = json.loads(run("forget", path, "--where", DAY, "--yes", "--json"))
    assert told["latent"] == fresh(REST).latent
    assert "7 dates" in run("summary", path)
    run("restore", path, "--last")
    run("verify", path)
    run("report", path, "--out", tmp_path / "report.html")
    assert "initial_variance by date, 8 values" in (tmp_path / "report.html").read_text()
