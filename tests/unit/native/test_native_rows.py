"""Without rollouts, batches of the native pool are answered stream by stream and counted at once."""

import contextlib
from collections.abc import Iterator

import numpy as np
import pytest

import kubebeast_native as native
from tests.unit.native.native_client import (
    CORE_STATE_SIZE,
    NUM_ENVS,
    NUM_LOGITS,
    PATIENCE_MS,
    Client,
    make_pool,
    next_batch,
    outputs,
)


@pytest.fixture
def pool() -> Iterator[native.ActorPool]:
    """A pool with batches of two streams, or of one stream if it is alone."""
    pool = make_pool(unroll_length=0, batch_size=1, min_inference_rows=2 * NUM_ENVS, inference_timeout_ms=PATIENCE_MS)
    pool.start()
    pool.open(NUM_LOGITS, CORE_STATE_SIZE)
    yield pool
    pool.close()


@pytest.fixture
def clients(pool: native.ActorPool) -> Iterator[list[Client]]:
    with contextlib.ExitStack() as stack:
        clients = [Client(pool.address) for _ in range(2)]
        for client in clients:
            stack.callback(client.close)
            client.hello()
        yield clients


def test_streams_of_a_batch_are_answered_one_by_one(pool: native.ActorPool, clients: list[Client]) -> None:
    for client in clients:
        client.observe()
    batch = next_batch(pool)
    parts = batch.split()
    assert [part.num_rows for part in parts] == [NUM_ENVS, NUM_ENVS]
    np.testing.assert_array_equal(np.concatenate([part.slots for part in parts]), batch.slots)
    for part, rows in zip(parts, np.split(batch.observation[0], 2), strict=True):
        assert np.shares_memory(part.observation[0], rows)
    with pytest.raises(RuntimeError, match="answered before"):
        batch.reply(**outputs(batch))
    with pytest.raises(RuntimeError, match="answered before"):
        batch.split()

    parts[1].reply(**outputs(parts[1], action=2))
    parts[0].reply(**outputs(parts[0], action=3))
    assert sorted(client.actions().tolist() for client in clients) == [[2] * NUM_ENVS, [3] * NUM_ENVS]
    assert pool.stats()["inference_dropped"] == 0


def test_without_rollouts_a_step_is_delivered_with_its_batch(pool: native.ActorPool, clients: list[Client]) -> None:
    for step in range(4):
        for client in clients:
            client.observe()
        batch = next_batch(pool)
        assert not batch.interrupted.any() and not batch.unroll_start.any()
        batch.reply(**outputs(batch))
        for client in clients:
            client.actions()
        assert pool.stats()["steps_delivered"] == step * 2 * NUM_ENVS
    with pytest.raises(RuntimeError, match="assembles no rollouts"):
        pool.next_rollouts(0)
