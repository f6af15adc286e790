"""A native pool and one env-server stream for the tests of the bindings and of inference."""

from collections.abc import Iterator

import pytest

import kubebeast_native as native
from tests.unit.native.native_client import CORE_STATE_SIZE, NUM_LOGITS, Client, make_pool


@pytest.fixture
def pool() -> Iterator[native.ActorPool]:
    pool = make_pool()
    pool.start()
    pool.open(NUM_LOGITS, CORE_STATE_SIZE)
    yield pool
    pool.close()


@pytest.fixture
def client(pool: native.ActorPool) -> Iterator[Client]:
    client = Client(pool.address)
    client.hello()
    yield client
    client.close()
