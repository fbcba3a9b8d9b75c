"""Labels called like the words for a panel: nobody gets another calibration than the one they meant."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner, Result

import strikeout as so
from strikeout.cli import strikeout
from strikeout.errors import UsageError

DAYS = so.synthetic.panel_quotes(6, seed=2)


def labelled(name: str) -> so.Quotes:
    labels = {**DAYS.labels, name: DAYS.labels["date"]}
    return so.Quotes(ids=DAYS.ids, contracts=DAYS.contracts, observed=DAYS.observed, labels=labels)


@pytest.mark.parametrize("word", ["auto", "none"])
def test_a_label_called_like_a_word_for_panels_is_refused_as_one_with_the_remedy(word):
    quotes = labelled(word)
    with pytest.raises(UsageError, match=f"a label '{word}', .* Rename the label"):
        so.calibrate(quotes, so.Heston(), panel=word)
    assert so.calibrate(quotes, so.Heston(), panel="date").panel == "date"
    assert so.calibrate(quotes, so.Heston()).count == len(quotes)


def test_none_in_quotation_marks_is_answered_with_none():
    with pytest.raises(UsageError, match="Give panel=None"):
        so.calibrate(DAYS, so.Heston(), panel="none")


def typed(*words: object) -> Result:
    return CliRunner().invoke(strikeout, [str(word) for word in words])


def test_the_command_line_refuses_auto_where_it_is_typed_and_goes_on_without_it(tmp_path):
    file = tmp_path / "days.csv"
    so.write_quotes(labelled("auto"), file)
    asked = typed("calibrate", file, "--panel", "auto")
    assert asked.exit_code == 2
    assert "a label 'auto'" in asked.stderr
    assert "name another panel (--panel date), or none (--panel none)" in asked.stderr
    for remedy in (["--panel", "date"], ["--panel", "none"], []):
        assert typed("calibrate", file, *remedy).exit_code == 0


def test_none_at_the_command_line_is_no_panel_whatever_labels_are_called(tmp_path):
    file, book = tmp_path / "days.csv", tmp_path / "days.book"
    so.write_quotes(labelled("none"), file)
    with so.Book.create(book) as made:
        made.import_quotes(labelled("none"))
    for source in (file, book):
        done = typed("calibrate", source, "--panel", "none", "--json")
        assert done.exit_code == 0, done.stderr
        assert "initial_variance" in json.loads(done.stdout)["parameters"]  # one value, beside the others


def test_a_book_with_such_a_label_is_calibrated_by_date_unless_the_word_is_said(tmp_path):
    quotes = labelled("auto")
    with so.Book.create(tmp_path / "days.book") as book:
        book.import_quotes(quotes[:-3])
        assert book.calibrate().after.panel == "date"
        learnt = book.learn(quotes[-3:]).after
        assert (learnt.panel, learnt.asking["panel"]) == ("date", "auto")
        assert dict(learnt.parameters) == so.calibrate(quotes, so.Heston(), panel="date").parameters
        with pytest.raises(UsageError, match="a label 'auto'"):
            book.calibrate(panel="auto")
        assert book.calibrate(panel="date").after.panel == "date"
        assert book.calibrate(fresh=True).after.asking["panel"] == "auto"
        book.apply(book.forget(ids=quotes.ids[:2]))
        assert book.verify().holds, book.verify().summary()
    for words in ([], ["--starts", "2"], ["--fresh"]):
        assert typed("calibrate", tmp_path / "days.book", *words).exit_code == 0
    refused = typed("calibrate", tmp_path / "days.book", "--panel", "auto")
    assert (refused.exit_code, "a label 'auto'" in refused.stderr) == (2, True)


def test_auto_that_was_said_before_there_was_such_a_label_is_not_held_against_what_comes(tmp_path):
    quotes = labelled("auto")
    with so.Book.create(tmp_path / "days.book") as book:
        book.import_quotes(DAYS[:-3])
        book.calibrate(panel="auto")
        assert book.learn(quotes[-3:]).after.panel == "date"
    with so.Book.open(tmp_path / "days.book") as book:
        assert book.calibrate().after.panel == "date"
