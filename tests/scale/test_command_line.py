"""``strikeout scale``: gather, calibrate, forget, fleet and verify on a folder of files."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

import strikeout as so
from strikeout.cli import strikeout
from strikeout.states import Moments
from tests.scale.conftest import DAYS


def run(*words):
    return CliRunner().invoke(strikeout, ["scale", *map(str, words)])


def shown(*words):
    done = run(*words, "--json")
    assert done.exit_code == 0, done.stderr
    return json.loads(done.stdout)


def test_gather_counts_by_tag_and_keeps_states(lake, days, tmp_path):
    first = shown("gather", lake.path, "--tags", "licence", "--cache", tmp_path, "--engine", "here")
    second = shown("gather", lake.path, "--tags", "licence", "--cache", tmp_path, "--engine", "here")
    whole = Moments.total([so.states.moments_of(quotes) for quotes in days])
    assert (first["digest"], first["reused"], second["reused"]) == (whole.digest(), 0, len(DAYS))
    table = run("gather", lake.path, "--tags", "licence", "--engine", "here", "--format", "csv").stdout.splitlines()
    assert [line.split(",")[0] for line in table] == ["licence", "L1", "L3"]


def test_calibrate_and_forget_have_the_bits_of_python(lake, days):
    kept = [quotes[quotes.labels["licence"] != "L3"] for quotes in days]
    never = so.calibrate(Moments.total([so.states.moments_of(quotes) for quotes in kept]), so.Heston())
    found = shown("forget", lake.path, "--tag", "licence=L3", "--engine", "here")
    assert found["after"]["parameters"] == never.parameters
    assert found["digest"] == never.moments.digest()
    one = shown("calibrate", lake.path, "--only", f"partition={DAYS[0]}.parquet", "--engine", "here")
    assert one["parameters"] == so.calibrate(so.states.moments_of(days[0]), so.Heston()).parameters


def test_fleet_writes_a_table_and_continues_it(lake, tmp_path):
    out = tmp_path / "fits.parquet"
    first = shown("fleet", lake.path, "--out", out, "--engine", "here")
    second = shown("fleet", lake.path, "--out", out, "--engine", "here")
    assert [row["group"]["date"] for row in first["fits"]] == list(DAYS)
    assert (second["reused"], second["digest"]) == (len(DAYS), first["digest"])


def test_verify_compares_files_with_the_cache(lake, tmp_path):
    words = (lake.path, "--cache", tmp_path, "--engine", "here")
    run("gather", *words)
    assert shown("verify", *words, "--share", "0.5", "--seed", "3") == {"checked": 2, "wrong": [], "equal": True}
    assert run("verify", lake.path).exit_code == 2


@pytest.mark.parametrize("words", [("--tag", "licence"), ("--tag", "licence=L9"), ("--tag", "desk=x")])
def test_a_tag_that_means_nothing_is_refused(lake, words):
    assert run("forget", lake.path, *words, "--engine", "here").exit_code in (2, 3)
