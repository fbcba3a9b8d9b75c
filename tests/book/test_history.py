"""The calibrations of a book over its entries."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

import strikeout as so
from strikeout.cli import strikeout

QUOTES = so.paper.quotes("small", seed=8)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """A book that was calibrated, lost 30 quotes and got them back."""
    file = tmp_path_factory.mktemp("history") / "a.book"
    with so.Book.create(file) as book:
        book.import_quotes(QUOTES)
        book.calibrate(panel=None)
        book.forget(ids=QUOTES.ids[:30].tolist(), reason="test")
        book.restore()
    return file


def test_every_calibration_is_a_row_with_its_entry(path):
    with so.Book.open(path) as book:
        stages, entries = book.history().stages, {entry.number: entry for entry in book.log()}
    assert [stage.what for stage in stages] == ["calibrate", "forget", "restore"]
    assert [stage.count for stage in stages] == [540, 510, 540]
    assert stages[0].parameters == stages[2].parameters == so.calibrate(QUOTES, so.Heston()).parameters
    assert stages[1].parameters == so.calibrate(QUOTES[30:], so.Heston()).parameters
    assert all((stage.when, stage.who) == (entries[stage.entry].at, entries[stage.entry].who) for stage in stages)


def test_the_frame_and_the_command_show_the_same(path):
    with so.Book.open(path) as book:
        history = book.history()
    assert history.to_frame()["correlation"].to_list() == [stage.parameters["correlation"] for stage in history.stages]
    shown = json.loads(CliRunner().invoke(strikeout, ["history", str(path), "--json"]).stdout)
    assert shown == json.loads(json.dumps(history.to_dict()))
    table = CliRunner().invoke(strikeout, ["history", str(path), "--format", "csv"]).stdout.strip().splitlines()
    assert len(table) == 4


def test_results_that_an_erasure_removed_are_not_listed(tmp_path):
    with so.Book.create(tmp_path / "b.book", smallest_erasure=1) as book:
        book.import_quotes(QUOTES)
        book.calibrate(panel=None)
        book.erase(ids=QUOTES.ids[:30].tolist(), reason="licence")
        stages = book.history().stages
    assert [stage.count for stage in stages] == [510]
