"""Buckets of a real S3 server."""

from collections.abc import Iterator

import pytest

from harness.processes.s3_server import BUCKET, S3Server, serve_s3
from kubebeast_runs.bucket import objects, pointer
from kubebeast_runs.bucket.objects import Bucket

QUICK_S = 0.2


@pytest.fixture(scope="session")
def s3() -> Iterator[S3Server]:
    with serve_s3() as server:
        yield server


@pytest.fixture
def url(s3: S3Server, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> str:
    """URL for the runs of one test; leases and retries are short."""
    for name, value in s3.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(pointer, "LEASE_S", QUICK_S)
    monkeypatch.setattr(pointer, "_POLL_S", QUICK_S / 10)
    monkeypatch.setitem(objects.RETRIES, "max_retries", 0)
    return f"s3://{BUCKET}/{abs(hash(request.node.nodeid))}"


@pytest.fixture
def bucket(url: str) -> Bucket:
    return Bucket(url)
