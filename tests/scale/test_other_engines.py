"""Ray and Spark on this machine: the bits of a loop, also when workers are killed."""

from __future__ import annotations

import os
import shutil
import signal
from functools import partial
from importlib import import_module
from importlib.util import find_spec

import pytest

import strikeout as so
from strikeout.errors import UsageError
from strikeout.scale import engine_named, engines
from strikeout.scale.engines import CLUSTERS

OTHERS = [name for name in CLUSTERS if name != "dask"]  # has tests of its own


def ready(name):
    """Skip the test where the engine, or the Java that it needs, is missing."""
    if find_spec("pyspark" if name == "spark" else name) is None:
        pytest.skip(f"{name} is not installed: strikeout[{name}]")
    if name == "spark" and shutil.which("java") is None:
        pytest.skip("Spark needs Java")
    return name


@pytest.fixture(scope="module", params=OTHERS)
def engine(request):
    with engine_named(ready(request.param)) as made:
        yield made


def test_another_engine_gives_the_bits_of_this_process(lake, engine):
    here = so.scale.gather(lake, tags="licence", engine="here")
    there = so.scale.gather(lake, tags="licence", engine=engine)
    assert there.digest() == here.digest()
    fleet = so.scale.calibrate_many(lake, so.Heston(), engine=engine)
    assert fleet.digest() == so.scale.calibrate_many(lake, so.Heston(), engine="here").digest()


def die_once(folder, number):
    """Kill the own process the first time, answer the second."""
    mark = folder / f"{number}"
    if number % 2 == 0 and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return number * number


def test_batches_of_killed_workers_are_repeated(engine, tmp_path):
    found = set(engine.answers(partial(die_once, tmp_path), list(range(8))))
    assert found == {number * number for number in range(8)}
    assert len(list(tmp_path.iterdir())) == 4


@pytest.mark.parametrize("name", CLUSTERS)
def test_an_engine_that_is_not_installed_is_named(monkeypatch, name):
    def missing(module, *_):
        raise ImportError(module)

    adapter = import_module(f"strikeout.scale.{name}")
    monkeypatch.setattr(engines, "import_module", missing)
    with pytest.raises(UsageError) as caught:
        adapter.connected(None)
    assert caught.value.facts["engine"] == name


def test_an_unknown_engine_is_refused():
    with pytest.raises(UsageError):
        engine_named("flink")
