"""Readers and writers at once, and a server that is killed: the quick form of ``python3 go.py bench load``."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from benchmarks.load import Load, under_load


def test_readers_and_writers_get_honest_answers_and_a_killed_server_loses_no_acknowledged_change(tmp_path):
    with ThreadPoolExecutor(1) as apart:  # Playwright leaves a running event loop in the thread of its tests
        found = apart.submit(under_load, tmp_path, Load(readers=6, writers=2, books=2, seconds=2.0)).result()
    assert found.errors == {}
    assert found.missing == []
    assert found.unverified == []
    assert found.reads
    assert 0 < found.before < len(found.acknowledged)  # some before the server was killed, and some after
