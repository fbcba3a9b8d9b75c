"""Samples: made up, the same every time, and good enough to learn on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import strikeout as so
from strikeout.cli import strikeout
from strikeout.cli.inspect import KINDS as OFFERED
from strikeout.errors import UsageError
from strikeout.quotes.reading import inspect_quotes
from strikeout.synthetic.sample_files import KINDS, SAMPLE_TRUTH, write_sample
from tests.raising import raises


def off(calibration: so.results.Calibration) -> float:
    """How far the parameters are from the truth, in standard errors: the worst."""
    return max(
        abs(calibration.parameters[name] - truth) / calibration.standard_errors[name]
        for name, truth in SAMPLE_TRUTH.items()
    )


@pytest.mark.parametrize("kind", KINDS)
def test_a_sample_has_the_same_bytes_every_time(tmp_path: Path, kind: str) -> None:
    first, second = (write_sample(tmp_path / name, kind).read_bytes() for name in ("a.csv", "b.csv"))
    assert first == second


def test_a_page_reads_by_its_profile_with_the_blemishes_it_was_given(tmp_path: Path) -> None:
    reading = inspect_quotes(write_sample(tmp_path / "page.csv"))
    assert reading.table.profile is not None
    assert reading.table.profile.name == "cboe-dashboard"
    found = {step.code: step.removed for step in reading.screening.steps if step.removed}
    assert (found["Q101"], found["Q103"]) == (1, 1)
    assert found["Q105"] > 50
    assert not {"Q301", "Q302", "Q303", "Q304", "Q305"} & set(reading.issues.counts)
    assert set(reading.quotes.labels["forward_from"]) == {"parity"}


def test_a_page_leads_back_to_the_truth_it_was_made_from(tmp_path: Path) -> None:
    quotes = inspect_quotes(write_sample(tmp_path / "page.csv")).quotes
    assert off(so.calibrate(quotes, so.Heston(), weights="spread")) < 4.0


def test_one_feed_stood_still_and_without_that_day_the_truth_is_found(tmp_path: Path) -> None:
    reading = inspect_quotes(write_sample(tmp_path / "feeds.csv", "feeds"))
    quotes = reading.quotes
    bad = (quotes.labels["source"] == "south") & (quotes.labels["date"] == "2024-03-13")
    stale = np.isin(quotes.ids, reading.issues.ids("Q210"))
    assert stale[bad].mean() > 0.9
    assert off(so.calibrate(quotes, so.Heston(), weights="spread")) > 4.0
    assert off(so.calibrate(quotes[~bad], so.Heston(), weights="spread")) < 4.0


def test_another_kind_or_ending_is_refused(tmp_path: Path) -> None:
    with raises(UsageError, sample="panel"):
        write_sample(tmp_path / "a.csv", "panel")
    with raises(UsageError, path=str(tmp_path / "a.parquet")):
        write_sample(tmp_path / "a.parquet")


def test_the_command_writes_what_the_function_does(tmp_path: Path) -> None:
    assert OFFERED == KINDS
    done = CliRunner().invoke(strikeout, ["sample", str(tmp_path / "a.csv"), "--kind", "feeds"])
    assert done.exit_code == 0
    assert "no market data" in done.stdout
    assert (tmp_path / "a.csv").read_bytes() == write_sample(tmp_path / "b.csv", "feeds").read_bytes()


def test_the_words_on_flags_count_rows_as_the_table_of_rules_does(tmp_path):
    """A stale feed has rows that a rule names several times, each with other partners."""
    reading = so.inspect_quotes(so.synthetic.write_sample(tmp_path / "week.csv", "feeds"))
    steps = {step.code: step for step in reading.screening.steps}
    assert reading.issues.counts["Q303"] > steps["Q303"].flagged
    told = ", ".join(f"{code} {step.name}: {step.flagged:,}" for code, step in sorted(steps.items()))
    assert reading.issues.flags() == told


def test_the_words_on_what_stays_in_leave_out_rows_that_another_rule_rejects(tmp_path):
    path = write_sample(tmp_path / "page.csv")
    far = set(inspect_quotes(path).issues.ids("Q209"))
    wide = inspect_quotes(path, checks={"Q208": 0.01}).issues
    stay = len(set(wide.ids("Q208")) - far)
    assert len(far) == 8
    assert stay < len(wide.ids("Q208"))
    assert f"Q208 wide spread: {stay}" in inspect_quotes(path, checks={"Q208": 0.01, "Q209": "reject"}).issues.flags()
