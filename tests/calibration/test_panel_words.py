"""Labels called like the words for a panel: nobody gets another calibration than the one they meant."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

import strikeout as so
from strikeout.cli import strikeout
from strikeout.errors import UsageError

DAYS = so.panel_quotes(6, seed=2)


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


@pytest.mark.parametrize("word", ["auto", "none"])
def test_the_command_line_refuses_it_too_and_goes_on_without_the_word(word, tmp_path):
    file = str(tmp_path / "days.csv")
    so.write_quotes(labelled(word), file)
    asked = CliRunner().invoke(strikeout, ["calibrate", file, "--panel", word])
    assert asked.exit_code == 2
    assert f"a label '{word}'" in asked.stderr
    assert CliRunner().invoke(strikeout, ["calibrate", file, "--panel", "date"]).exit_code == 0
    assert CliRunner().invoke(strikeout, ["calibrate", file]).exit_code == 0


def test_a_book_with_such_a_label_asks_which_panel_is_meant(tmp_path):
    with so.Book.create(tmp_path / "days.book") as book:
        book.import_quotes(labelled("auto"))
        with pytest.raises(UsageError, match="a label 'auto'"):
            book.calibrate()
        assert book.calibrate(panel="date").after.panel == "date"
        assert book.calibrate().after.panel == "date"
