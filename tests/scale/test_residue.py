"""A lake searched for erased quotes: data, old versions, logs, statistics and the cache."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner

import strikeout as so
from strikeout.cli import strikeout
from strikeout.errors import UsageError
from strikeout.scale import search_lake
from tests.scale.conftest import DAYS


@pytest.fixture
def folder(days, tmp_path):
    for date, quotes in zip(DAYS[:2], days[:2], strict=True):
        so.write_quotes(quotes, tmp_path / f"{date}.parquet")
    return tmp_path


def places(found):
    return {(finding.file, finding.place.name) for finding in found.findings}


def test_a_quote_in_a_data_file_is_found_by_id_and_by_contract_and_price(folder, days):
    erased = days[0][:3]
    found = search_lake(so.scale.Lake(folder), erased)
    data = [finding for finding in found.findings if finding.place.name == "DATA"]
    assert [(finding.file, finding.quotes) for finding in data] == [(f"{DAYS[0]}.parquet", 3)]
    renamed = so.Quotes(
        ids=["a-other", "b-other", "c-other"],
        contracts=erased.contracts,
        observed=erased.observed,
        labels=dict(erased.labels),
    )
    assert (f"{DAYS[0]}.parquet", "DATA") in places(search_lake(so.scale.Lake(folder), renamed))


def test_a_lake_without_the_quotes_is_clean(folder, days):
    gone = days[0].ids[:3]
    so.write_quotes(days[0].without(gone), folder / f"{DAYS[0]}.parquet")
    found = search_lake(so.scale.Lake(folder), days[0][:3])
    assert found.is_clean
    assert found.files == 2


def test_statistics_logs_and_other_files_are_found(folder, days):
    highest = int(np.argmax(days[0].observed))
    erased = days[0][[highest]]
    assert (f"{DAYS[0]}.parquet", "STATISTICS") in places(search_lake(so.scale.Lake(folder), erased))
    so.write_quotes(days[0].without(erased.ids), folder / f"{DAYS[0]}.parquet")
    (folder / "notes.txt").write_text(f"bad tick: {erased.ids[0]}\n")
    (folder / "_delta_log").mkdir()
    (folder / "_delta_log" / "00000000000000000000.json").write_text(
        json.dumps({"add": {"path": f"{DAYS[1]}.parquet", "stats": json.dumps({"max": float(erased.observed[0])})}})
    )
    so.write_quotes(erased, folder / "old.parquet")
    found = places(search_lake(so.scale.Lake(folder), erased))
    assert ("notes.txt", "OTHER") in found
    assert ("_delta_log/00000000000000000000.json", "LOG") in found
    assert ("old.parquet", "OLD_VERSION") in found
    assert not any(file == f"{DAYS[0]}.parquet" for file, _ in found)


def test_states_of_files_with_erased_quotes_are_found_in_the_cache(folder, days, tmp_path_factory):
    cache = tmp_path_factory.mktemp("cache")
    so.scale.gather(folder, cache=cache, engine="here")
    found = search_lake(so.scale.Lake(folder), days[0][:1], cache=str(cache))
    assert sum(finding.place.name == "CACHE" for finding in found.findings) == 1


def test_a_real_delta_table_keeps_what_was_deleted(days, tmp_path):
    deltalake = pytest.importorskip("deltalake", reason="deltalake is not installed; pip install deltalake")
    frame = days[0].to_frame()
    deltalake.write_deltalake(str(tmp_path / "table"), frame.to_arrow())
    erased = days[0][[int(np.argmax(days[0].observed))]]
    table = deltalake.DeltaTable(str(tmp_path / "table"))
    table.delete(f"id = '{erased.ids[0]}'")
    before = places(search_lake(so.scale.Lake(tmp_path / "table"), erased))
    assert {place for _, place in before} >= {"OLD_VERSION", "LOG"}
    table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    after = {place for _, place in places(search_lake(so.scale.Lake(tmp_path / "table"), erased))}
    assert after == {"LOG"}


def test_a_table_is_not_read_as_a_plain_folder(folder):
    (folder / "_delta_log").mkdir()
    with pytest.raises(UsageError):
        so.scale.gather(folder)


def test_the_command_reports_findings(folder, days, tmp_path_factory):
    listed = tmp_path_factory.mktemp("erased") / "erased.csv"
    so.write_quotes(days[0][:3], listed)
    done = CliRunner().invoke(strikeout, ["scale", "residue", str(folder), "--erased", str(listed), "--json"])
    assert done.exit_code == 1
    assert f"{DAYS[0]}.parquet" in {row["file"] for row in json.loads(done.stdout)["findings"]}
    so.write_quotes(days[0][3:], folder / f"{DAYS[0]}.parquet")
    again = CliRunner().invoke(strikeout, ["scale", "residue", str(folder), "--erased", str(listed)])
    assert again.exit_code == 0, again.stdout


def test_the_status_lists_what_the_cache_has(folder, days, tmp_path_factory):
    cache = str(tmp_path_factory.mktemp("cache"))
    words = ["scale", "status", str(folder), "--cache", cache, "--json"]
    assert json.loads(CliRunner().invoke(strikeout, words).stdout)["kept"] == 0
    so.scale.gather(folder, cache=cache, engine="here")
    so.write_quotes(days[0][3:], folder / f"{DAYS[0]}.parquet")
    shown = json.loads(CliRunner().invoke(strikeout, words).stdout)
    assert [row["kept"] for row in shown["partitions"]] == [False, True]
