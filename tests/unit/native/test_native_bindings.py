"""Batches of the native actor pool are correct in numpy; a stock gRPC client drives the pool."""

import gc
import re
from pathlib import Path

import grpc
import numpy as np
import pytest

import kubebeast_native as native
from kubebeast_common.ids.env_id import KINDS
from kubebeast_protos.v1 import actor_pool_pb2 as pb
from tests.unit.native.native_client import (
    CORE_STATE_SIZE,
    NUM_ENVS,
    NUM_LOGITS,
    PATIENCE_MS,
    B,
    Client,
    T,
    make_pool,
    next_batch,
    outputs,
    roll,
)


def test_the_core_knows_the_kinds_of_environment_ids() -> None:
    header = Path(__file__).resolve().parents[3] / "native" / "src" / "core" / "wire" / "env_id.h"
    assert tuple(re.findall(r'"([a-z_]+/)"', header.read_text(encoding="utf-8"))) == KINDS


def test_an_inference_batch_has_the_documented_shapes_and_dtypes(pool: native.ActorPool, client: Client) -> None:
    client.observe()
    batch = next_batch(pool)
    arrays = {
        "image": batch.observation[0],
        "speed": batch.observation[1],
        "rewards": batch.rewards,
        "terminated": batch.terminated,
        "truncated": batch.truncated,
        "is_first": batch.is_first,
        "last_action": batch.last_actions[0],
        "slots": batch.slots,
        "unroll_start": batch.unroll_start,
        "task": batch.task,
    }
    N = NUM_ENVS
    assert {name: (array.dtype.name, array.shape) for name, array in arrays.items()} == {
        "image": ("uint8", (N, 2, 2, 3)),
        "speed": ("float32", (N,)),
        "rewards": ("float32", (N,)),
        "terminated": ("bool", (N,)),
        "truncated": ("bool", (N,)),
        "is_first": ("bool", (N,)),
        "last_action": ("int64", (N,)),
        "slots": ("int32", (N,)),
        "unroll_start": ("bool", (N,)),
        "task": ("int64", (N,)),
    }
    assert batch.num_rows == N
    assert batch.is_first.all() and batch.unroll_start.all()
    assert len(set(batch.slots.tolist())) == N


def test_a_rollout_batch_has_the_documented_shapes_and_values(pool: native.ActorPool, client: Client) -> None:
    roll(pool, client, T + 1)
    batch = pool.next_rollouts(PATIENCE_MS)
    assert batch is not None
    shapes = {
        "observation": [(a.dtype.name, a.shape) for a in batch.observation],
        "last_actions": [(a.dtype.name, a.shape) for a in batch.last_actions],
        "actions": [(a.dtype.name, a.shape) for a in batch.actions],
    }
    assert shapes == {
        "observation": [("uint8", (T + 1, B, 2, 2, 3)), ("float32", (T + 1, B))],
        "last_actions": [("int64", (T + 1, B))],
        "actions": [("int64", (T, B))],
    }
    steps = np.arange(T + 1)
    assert (batch.observation[0][:, :, 1] == steps[:, None, None, None]).all()
    assert (batch.observation[0][1:, :, 0] == steps[:-1, None, None, None]).all()
    assert (batch.rewards == steps[:, None]).all() and batch.rewards.dtype == np.float32
    assert (batch.actions[0] == steps[:-1, None]).all()
    assert (batch.last_actions[0][1:] == batch.actions[0]).all() and not batch.last_actions[0][0].any()
    assert batch.is_first[0].all() and not batch.is_first[1:].any()
    assert not batch.terminated.any() and not batch.truncated.any()
    assert batch.policy_logits.shape == (T, B, NUM_LOGITS) and (batch.policy_logits == np.float32(0.5)).all()
    assert batch.baseline.shape == (T, B) and (batch.baseline == np.float32(0.25)).all()
    assert batch.policy_version.dtype == np.int64 and (batch.policy_version == 7).all()
    assert batch.valid.all() and batch.valid.shape == (T, B)
    assert batch.core_state.shape == (B, CORE_STATE_SIZE) and (batch.core_state == 3).all()
    assert batch.num_transitions == T * B
    assert batch.task.dtype == np.int64 and batch.task.tolist() == [0] * B


def test_rows_and_unrolls_say_which_task_they_are_of() -> None:
    pool = make_pool(task_shares=[("Other-v0", 0.5), ("Test-v0", 2)])
    pool.start()
    pool.open(NUM_LOGITS, CORE_STATE_SIZE)
    client = Client(pool.address)
    client.hello()
    roll(pool, client, T + 1)
    rollouts = pool.next_rollouts(PATIENCE_MS)
    assert rollouts is not None and rollouts.task.tolist() == [1] * B
    client.observe()
    assert next_batch(pool).task.tolist() == [1] * NUM_ENVS
    client.close()
    pool.close()


def test_arrays_are_writable_views_that_outlive_batch_and_pool() -> None:
    pool = make_pool()
    pool.start()
    pool.open(NUM_LOGITS, CORE_STATE_SIZE)
    client = Client(pool.address)
    client.hello()
    roll(pool, client, T + 1)
    batch = pool.next_rollouts(PATIENCE_MS)
    assert batch is not None
    image = batch.observation[0]
    assert np.shares_memory(image, batch.observation[0])
    image[0] = 9
    assert (batch.observation[0][0] == 9).all()
    client.close()
    pool.close()
    del batch, pool
    gc.collect()
    assert (image[0] == 9).all() and (image[T, :, 1] == T).all()


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("actions", []),
        ("actions", [np.zeros(NUM_ENVS, np.int32)]),
        ("actions", [np.zeros(NUM_ENVS + 1, np.int64)]),
        ("actions", [np.zeros(2 * NUM_ENVS, np.int64)[::2]]),
        ("policy_logits", np.zeros((NUM_ENVS, NUM_LOGITS), np.float64)),
        ("policy_logits", np.zeros((NUM_ENVS, NUM_LOGITS + 1), np.float32)),
        ("policy_logits", np.zeros((NUM_LOGITS, NUM_ENVS), np.float32).T),
        ("policy_logits", np.zeros((NUM_ENVS, NUM_LOGITS), ">f4")),
        ("baseline", np.zeros((NUM_ENVS, 1), np.float32)),
        ("core_state", np.zeros((NUM_ENVS - 1, CORE_STATE_SIZE), np.float32)),
        ("core_state", None),
    ],
)
def test_reply_names_the_bad_argument_and_may_be_repeated(
    pool: native.ActorPool, client: Client, argument: str, value: object
) -> None:
    client.observe()
    batch = next_batch(pool)
    good = outputs(batch)
    with pytest.raises(ValueError, match=rf"^{argument}"):
        batch.reply(**(good | {argument: value}))
    batch.reply(**good)
    assert client.actions().tolist() == [1, 1]


def test_a_batch_is_answered_at_most_once(pool: native.ActorPool, client: Client) -> None:
    client.observe()
    batch = next_batch(pool)
    batch.reply(**outputs(batch))
    with pytest.raises(RuntimeError, match="answered before"):
        batch.reply(**outputs(batch))


def test_core_state_is_optional_for_a_model_without_one() -> None:
    pool = make_pool()
    pool.start()
    pool.open(NUM_LOGITS, 0)
    client = Client(pool.address)
    client.hello()
    client.observe()
    batch = next_batch(pool)
    batch.reply(**(outputs(batch) | {"core_state": None}))
    assert client.actions().tolist() == [1, 1]
    client.close()
    pool.close()


def test_a_dropped_batch_ends_its_streams(pool: native.ActorPool, client: Client) -> None:
    client.observe()
    batch = next_batch(pool)
    del batch
    gc.collect()
    assert client.status() is grpc.StatusCode.INTERNAL
    assert pool.stats()["inference_dropped"] == 1


def test_episodes_are_handed_out_once(pool: native.ActorPool, client: Client) -> None:
    client.observe(episodes=(pb.Episode(env=1, episode_return=21.5, length=813),))
    batch = next_batch(pool)
    (episode,) = pool.take_episodes()
    assert (episode.env_server_id, episode.env_id) == ("pod-0", "Test-v0")
    assert (episode.episode_return, episode.length) == (21.5, 813)
    assert pool.take_episodes() == []
    batch.reply(**outputs(batch))


def test_stats_have_the_documented_keys() -> None:
    stub = Path(native.__file__).with_name("_core.pyi").read_text()
    text = " ".join(stub[stub.index("def stats") : stub.index("def close")].split())
    gauges, counters = re.findall(r"(?:Gauges|Counters): ([^.]+)\.", text)
    assert set(make_pool().stats()) == {*gauges.split(", "), *counters.split(", ")}


def test_every_sampled_step_is_accounted_for(pool: native.ActorPool, client: Client) -> None:
    roll(pool, client, T + 2)
    assert pool.next_rollouts(PATIENCE_MS) is not None
    stats = pool.stats()
    assert stats["steps_sampled"] == (T + 1) * NUM_ENVS
    assert (stats["steps_delivered"], stats["steps_in_flight"]) == (T * B, NUM_ENVS)
    assert (stats["streams"], stats["envs"], stats["streams_accepted"]) == (1, NUM_ENVS, 1)
    pool.close()
    stats = pool.stats()
    assert (stats["steps_dropped_close"], stats["steps_in_flight"]) == (NUM_ENVS, 0)


def test_a_call_without_time_to_connect_is_refused() -> None:
    with pytest.raises(ValueError, match="connect_timeout_ms = 0: must be positive"):
        native.ActCall("127.0.0.1:1", connect_timeout_ms=0)
