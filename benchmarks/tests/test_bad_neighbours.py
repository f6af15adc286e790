"""The bad neighbors of the benchmark misbehave according to their names."""

import asyncio
import contextlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import kubebeast_native as native
from benchmarks import frames, native_server, neighbours
from benchmarks.cell import Cell
from benchmarks.neighbours import Kind

CELL = Cell(streams=1, num_envs=2)
WAIT_S = 30.0


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    path = tmp_path / "frames.npy"
    np.save(path, np.zeros((frames.NUM_STEPS, frames.NUM_ENVS, 84, 84), np.uint8))
    return path


@pytest.fixture
def pool() -> Iterator[native.ActorPool]:
    pool = native.ActorPool(
        address="127.0.0.1:0",
        run_id="neighbours",
        unroll_length=CELL.unroll_length,
        batch_size=CELL.batch_size,
        handshake_timeout_ms=100,
        step_timeout_ms=100,
        expected=native_server.env_spec(CELL),
    )
    pool.start()
    pool.open(num_logits=frames.NUM_ACTIONS, core_state_size=0)
    yield pool
    pool.close()


@pytest.mark.parametrize(
    ("kind", "counted_as"),
    [
        ("idle", "streams_ended_timeout"),
        ("slow", "streams_rejected"),
        ("flooding", "streams_ended_invalid"),
        ("lying", "streams_ended_invalid"),
    ],
)
def test_a_bad_neighbour_is_turned_away_for_what_it_does(
    pool: native.ActorPool, recording: Path, kind: Kind, counted_as: str
) -> None:
    words = neighbours.script(kind, CELL, recording)

    with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):  # the connection may end before its stream
        asyncio.run(asyncio.wait_for(neighbours.attack(kind, pool.address, words), WAIT_S))

    assert pool.stats()[counted_as] == 1


def test_a_flood_is_many_steps_that_wait_for_nothing(recording: Path) -> None:
    assert len(neighbours.script("flooding", CELL, recording)) > 10 * len(neighbours.script("idle", CELL, recording))
