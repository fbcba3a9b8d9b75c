"""A lake in an object store: moto's server on loopback speaks S3."""

from __future__ import annotations

import pytest

import strikeout as so
from tests.scale.conftest import DAYS

server = pytest.importorskip("moto.server", reason="moto is not installed: pip install 'moto[server,s3]'")
boto3 = pytest.importorskip("boto3", reason="boto3 is not installed: pip install 'moto[server,s3]'")

KEYS = {"aws_access_key_id": "test", "aws_secret_access_key": "test", "aws_region": "us-east-1"}


@pytest.fixture(scope="module")
def bucket(lake):
    """The files of the lake in a bucket; the options that Polars needs to read them."""
    running = server.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    running.start()
    address = "http://{}:{}".format(*running.get_host_and_port())
    client = boto3.client(
        "s3",
        endpoint_url=address,
        aws_access_key_id="test",
        aws_secret_access_key="test",
        region_name="us-east-1",
    )
    client.create_bucket(Bucket="quotes")
    for name in lake.partitions:
        client.upload_file(lake.location(name), "quotes", f"spx/{name}")
    yield {**KEYS, "aws_endpoint_url": address, "aws_allow_http": "true"}
    running.stop()


def test_an_object_store_has_the_states_of_the_folder(lake, bucket):
    remote = so.scale.Lake("s3://quotes/spx/*.parquet", storage=bucket)
    assert len(remote.partitions) == len(DAYS)
    there, here = (so.scale.gather(one, tags="licence", engine="here") for one in (remote, lake))
    assert there.total() == here.total()
    assert there.without(licence="L3").total() == here.without(licence="L3").total()
    fleet = so.scale.calibrate_many(remote, so.Heston(), engine="here")
    assert [fit.digest for fit in fleet.fits] == [
        fit.digest for fit in so.scale.calibrate_many(lake, so.Heston(), engine="here").fits
    ]
