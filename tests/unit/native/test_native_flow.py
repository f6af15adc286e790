"""Rows pass the native pool in order and unchanged, each inferred once and delivered once."""

import contextlib
import itertools
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

import kubebeast_native as native
from kubebeast_envserver.rows.rows import HostedEnv
from kubebeast_learner.actors.remote.actors import RemoteActors, make_pool
from kubebeast_learner.algorithm.rollout import Rollout, map_tensors
from kubebeast_learner.config import LearnerConfig, ModelConfig, RolloutConfig
from kubebeast_learner.models import Model, make_model
from tests.unit.envserver.envs.scripted_env import ACTION, NUM_ENVS, OBSERVATION, ScriptedEnv, StridedEnv
from tests.unit.learner.actors.mono.mono_actor import T
from tests.unit.native import native_client
from tests.unit.native.native_client import Client, outputs, roll
from tests.unit.native.native_host import hosted

PATIENCE_MS = native_client.PATIENCE_MS
NUM_STREAMS, NUM_CONSUMERS, NUM_UNROLLS = 16, 8, 10


def make_lstm() -> Model:
    torch.manual_seed(0)
    return make_model([OBSERVATION], [ACTION], ModelConfig(model="mlp", hidden_sizes=(8,), use_lstm=True))


def rollouts_of(env: HostedEnv, model: Model, number: int) -> list[Rollout]:
    """Returns the first unrolls of `env`, all its environments in one batch, sorted by environment."""
    config = LearnerConfig(rollout=RolloutConfig(unroll_length=T, batch_size=NUM_ENVS))
    pool = make_pool(config, "127.0.0.1:0")
    pool.start()
    actors = RemoteActors(config, pool, None)
    rollouts = []
    with hosted(env, pool.address):
        assert actors.wait_env_spec(PATIENCE_MS) is not None
        actors.start(model, torch.device("cpu"), version=7)
        for _ in range(number):
            rollout = actors.next_rollout(PATIENCE_MS)
            assert rollout is not None
            order = rollout.observation[0][0, :, 0].remainder(1).argsort()
            rollouts.append(map_tensors(lambda tensor, order=order: tensor[:, order], rollout))
    actors.stop()
    pool.close()
    return rollouts


def test_eleven_unrolls_overlap_by_one_row_and_carry_the_memory() -> None:
    env, model = ScriptedEnv(), make_lstm()
    rollouts = rollouts_of(env, model, 11)
    for before, after in itertools.pairwise(rollouts):
        assert torch.equal(before.observation[0][-1], after.observation[0][0])
        for name in ("rewards", "terminated", "truncated", "is_first", "last_action"):
            assert torch.equal(getattr(before, name)[-1], getattr(after, name)[0]), name
    seen = torch.cat([rollout.observation[0][:T, 0, 0] for rollout in rollouts])
    assert seen.tolist() == list(range(11 * T))
    taken = torch.cat([rollout.action for rollout in rollouts])
    np.testing.assert_array_equal(taken, np.stack(env.actions[: 11 * T]))

    core_state = model.initial_state(NUM_ENVS)
    for rollout in rollouts:
        torch.testing.assert_close(rollout.core_state, core_state)
        for t in range(T):
            row = rollout.model_inputs.map(lambda x, t=t: x[t : t + 1])
            with torch.no_grad():
                output, core_state = model(row, core_state)
            torch.testing.assert_close(rollout.policy_logits[t], output.policy_logits[0])


def test_origins_number_the_unrolls_of_each_environment() -> None:
    rollouts = rollouts_of(ScriptedEnv(), make_lstm(), 3)
    origins = [rollout.origin.tolist() for rollout in rollouts if rollout.origin is not None]
    (environments,) = {tuple(envs) for _, envs, _ in origins}

    assert sorted(environments) == list(range(NUM_ENVS))
    assert [streams for streams, _, _ in origins] == [[1] * NUM_ENVS] * 3
    assert [numbers for _, _, numbers in origins] == [[number] * NUM_ENVS for number in range(3)]


def test_the_frames_of_an_interleaved_stack_come_last() -> None:
    pool = native_client.make_pool()
    pool.start()
    pool.open(native_client.NUM_LOGITS, native_client.CORE_STATE_SIZE, interleaved=[True, False])
    with contextlib.closing(Client(pool.address)) as client:
        client.hello()
        for step in range(native_client.T + 1):
            client.observe()
            batch = native_client.next_batch(pool)
            image = batch.observation[0]
            assert image.shape == (native_client.NUM_ENVS, 2, 3, 2)
            np.testing.assert_array_equal(image[..., 0], max(0, step - 1))
            np.testing.assert_array_equal(image[..., 1], step)
            batch.reply(**outputs(batch))
            client.actions()
        rollouts = pool.next_rollouts(PATIENCE_MS)
    pool.close()
    assert rollouts is not None
    assert rollouts.observation[0].shape == (native_client.T + 1, native_client.B, 2, 3, 2)
    np.testing.assert_array_equal(rollouts.observation[0][:, 0, 0, 0, 1], np.arange(native_client.T + 1))
    np.testing.assert_array_equal(rollouts.observation[0][1:, 1, 1, 2, 0], np.arange(native_client.T))


def test_strided_observations_of_an_environment_arrive_as_they_are() -> None:
    for plain, strided in zip(*(rollouts_of(env(), make_lstm(), 3) for env in (ScriptedEnv, StridedEnv)), strict=True):
        assert torch.equal(plain.observation[0], strided.observation[0])


def test_every_observation_is_inferred_once_the_first_and_the_shared_ones_too(
    pool: native.ActorPool, client: Client
) -> None:
    roll(pool, client, 1)
    for _ in range(3):
        roll(pool, client, native_client.T)
        assert pool.next_rollouts(PATIENCE_MS) is not None
    stats = pool.stats()
    num_rows = (1 + 3 * native_client.T) * native_client.NUM_ENVS
    assert (stats["rows_received"], stats["inference_rows"]) == (num_rows, num_rows)
    assert stats["steps_delivered"] == num_rows - native_client.NUM_ENVS


def test_many_streams_and_consumers_lose_and_repeat_nothing_although_streams_stand_still() -> None:
    pool = native_client.make_pool(max_inference_rows=8, step_timeout_ms=10 * PATIENCE_MS)
    pool.start()
    pool.open(native_client.NUM_LOGITS, native_client.CORE_STATE_SIZE)
    first_rows: Counter[int] = Counter()
    lock, all_delivered = threading.Lock(), threading.Event()
    num_columns = NUM_STREAMS * NUM_UNROLLS * native_client.NUM_ENVS

    def infer() -> None:
        for batch in until_closed(pool.next_inference):
            batch.reply(**outputs(batch))

    def consume() -> None:
        for batch in until_closed(pool.next_rollouts):
            assert batch.valid.all()
            with lock:
                first_rows.update(batch.observation[1][0].astype(int).tolist())
                if first_rows.total() >= num_columns:
                    all_delivered.set()

    def play() -> None:
        """Stops after the answer to its last row and keeps a place in the queue that other streams wait for."""
        with contextlib.closing(Client(pool.address)) as client:
            client.hello()
            for _ in range(NUM_UNROLLS * native_client.T + 1):
                client.observe()
                client.actions()
            all_delivered.wait(PATIENCE_MS / 1000)

    workers = [infer] * 4 + [consume] * NUM_CONSUMERS
    threads = [threading.Thread(target=target) for target in [*workers, *[play] * NUM_STREAMS]]
    for thread in threads:
        thread.start()
    for thread in threads[len(workers) :]:
        thread.join()
    pool.close()
    for thread in threads[: len(workers)]:
        thread.join()
    assert all_delivered.is_set(), first_rows
    stats = pool.stats()
    expected = {native_client.T * unroll: NUM_STREAMS * native_client.NUM_ENVS for unroll in range(NUM_UNROLLS)}
    assert first_rows == expected
    assert stats["steps_delivered"] == stats["steps_sampled"] == num_columns * native_client.T


def until_closed(take: Callable[[int], Any]) -> Iterator[Any]:
    """Yields the results of `take` until the pool is closed."""
    with contextlib.suppress(native.ClosedError):
        while True:
            item = take(100)
            if item is not None:
                yield item
