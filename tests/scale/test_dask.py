"""A Dask cluster of this machine: one digest for any number of workers, also when workers are killed."""

from __future__ import annotations

import os
import random
import signal
import threading

import pytest

import strikeout as so
from strikeout.errors import UsageError
from strikeout.scale import engine_named
from tests.scale.conftest import DAYS, day_of_quotes

distributed = pytest.importorskip("distributed", reason="Dask is not installed: strikeout[dask]")

KILLS = 10


@pytest.fixture(scope="module")
def engine():
    with engine_named("dask") as made:
        yield made


@pytest.fixture(scope="module")
def many_days(tmp_path_factory):
    folder = tmp_path_factory.mktemp("many")
    for place in range(24):
        date = f"2024-0{1 + place // 8}-{1 + place % 8:02}"
        so.write_quotes(day_of_quotes(date, place), folder / f"{date}.parquet")
    return so.scale.Lake(folder)


def test_dask_gives_the_bits_of_this_process(lake, engine):
    here = so.scale.gather(lake, tags="licence", engine="here")
    there = so.scale.gather(lake, tags="licence", engine=engine)
    assert there.digest() == here.digest()
    assert [part.state.digest() for part in there.parts] == [part.state.digest() for part in here.parts]
    fleet = so.scale.calibrate_many(lake, so.Heston(), engine=engine)
    assert fleet.digest() == so.scale.calibrate_many(lake, so.Heston(), engine="here").digest()
    assert len(fleet.fits) == len(DAYS)


def test_killed_workers_change_nothing(many_days, engine):
    expected = so.scale.gather(many_days, engine="here").digest()
    draws = random.Random(0)
    killed = 0
    for _ in range(KILLS):
        workers = [nanny.pid for nanny in engine.client.cluster.workers.values() if nanny.pid]
        victim = draws.choice(workers)
        timer = threading.Timer(draws.uniform(0.0, 0.2), os.kill, (victim, signal.SIGKILL))
        timer.start()
        assert so.scale.gather(many_days, engine=engine).digest() == expected
        timer.join()
        killed += 1
    assert killed == KILLS


def test_an_address_where_nothing_answers_is_refused():
    with distributed_timeout(), pytest.raises(UsageError):
        engine_named("dask:tcp://127.0.0.1:1")


def distributed_timeout():
    import dask

    return dask.config.set({"distributed.comm.timeouts.connect": "2s"})


def test_a_scheduler_with_tls_takes_clients_with_a_certificate_only(lake):
    import dask

    made = distributed.Security.temporary()
    config = {
        "distributed.comm.tls.ca-file": made.tls_ca_file,
        "distributed.comm.tls.client.cert": made.tls_client_cert,
        "distributed.comm.tls.client.key": made.tls_client_key,
    }
    inside = {"n_workers": 1, "threads_per_worker": 1, "processes": False, "dashboard_address": None}
    with distributed.LocalCluster(security=made, protocol="tls://", **inside) as cluster:
        address = cluster.scheduler_address
        assert address.startswith("tls://")
        with dask.config.set(config), engine_named(f"dask:{address}") as engine:
            assert so.scale.gather(lake, engine=engine).digest() == so.scale.gather(lake, engine="here").digest()
        for without in (address, address.replace("tls://", "tcp://")):
            with distributed_timeout(), pytest.raises(UsageError):
                engine_named(f"dask:{without}")
