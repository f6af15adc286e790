"""Env-servers as the actors of a training: the pool's settings, where it listens, whose errors are heard."""

import threading
from pathlib import Path
from typing import Any, cast

import pytest
import torch

import kubebeast_native as native
from kubebeast_learner import remote_actors
from kubebeast_learner.config import LearnerConfig, PoolConfig, ReplayConfig, RolloutConfig, RunConfig
from kubebeast_learner.env_spec import EnvSpec, Leaf
from kubebeast_learner.inference import InferenceError
from kubebeast_learner.remote_actors import RemoteActors, make_pool
from tests.unit.learning_data import VECTOR, make_mlp
from tests.unit.native_client import CORE_STATE_SIZE, NUM_LOGITS, PATIENCE_MS, Client, next_batch
from tests.unit.test_stream_log import Event

NUM_ACTIONS = 3


def test_every_setting_of_the_pool_reaches_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_actors, "ActorPool", dict)
    pool = PoolConfig(
        max_learner_queue_size=21,
        min_partial_steps=2,
        min_inference_rows=3,
        max_inference_rows=33,
        inference_timeout_ms=44,
        max_streams=55,
        max_envs=66,
        max_envs_per_stream=11,
        max_offences=12,
        max_message_mib=7,
        handshake_timeout_s=0.25,
        step_timeout_s=1200.0,
        tls_cert=Path("c.pem"),
        tls_key=Path("k.pem"),
        tls_ca=Path("/etc/ca.pem"),
        token_file=Path("~/tokens"),
    )
    config = LearnerConfig(
        run=RunConfig(xpid="pong"),
        rollout=RolloutConfig(unroll_length=8, batch_size=10),
        replay=ReplayConfig(replay_share=0.3),
        pool=pool,
    )
    assert cast("Any", make_pool(config, "host:1")) == {
        "address": "host:1",
        "run_id": "pong",
        "unroll_length": 8,
        "batch_size": 7,
        "min_inference_rows": 3,
        "max_envs_per_stream": 11,
        "max_offences": 12,
        "max_inference_rows": 33,
        "inference_timeout_ms": 44,
        "max_queued_rollouts": 21,
        "max_streams": 55,
        "max_envs": 66,
        "max_message_bytes": 7 * 1024**2,
        "min_partial_steps": 2,
        "handshake_timeout_ms": 250,
        "step_timeout_ms": 20 * 60 * 1000,
        "expected": None,
        "tls_cert": "c.pem",
        "tls_key": "k.pem",
        "tls_ca": "/etc/ca.pem",
        "token_file": str(Path.home() / "tokens"),
    }


def test_an_expected_environment_is_known_before_anybody_came() -> None:
    stacked, scalar = Leaf("screen", "uint8", (84, 84), 4, 0), Leaf("", "float32", (), 1, 0)
    expected = EnvSpec("Test-v0", (stacked, scalar), (Leaf("action", "int64", (), 1, 6),))
    pool = make_pool(LearnerConfig(run=RunConfig(xpid="run")), "127.0.0.1:0", expected)
    actors = RemoteActors(LearnerConfig(), pool, None)
    assert actors.wait_env_spec(0) == expected


@pytest.mark.parametrize("address", ["127.0.0.1:0", "localhost:0", "unix:{folder}/pool.sock"])
def test_env_servers_are_served_on_any_kind_of_address(address: str, tmp_path: Path) -> None:
    config = LearnerConfig(run=RunConfig(xpid="run"))
    pool = make_pool(config, address.format(folder=tmp_path))
    pool.start()
    client = Client(pool.address)
    greeting = threading.Thread(target=client.hello)
    greeting.start()
    assert pool.wait_env_spec(PATIENCE_MS) is not None
    pool.open(NUM_LOGITS, CORE_STATE_SIZE)
    greeting.join()
    client.observe()
    assert next_batch(pool).num_rows > 0
    client.close()
    pool.close()


class IdlePool:
    """A native pool without env-servers; keeps what it is asked."""

    address = ""

    def __init__(self) -> None:
        self.oldest_versions: list[int] = []
        self.drains: list[bool] = []
        self.events: list[Any] = []

    def wait_env_spec(self, timeout_ms: int) -> native.EnvSpec:
        observation = native.LeafSpec(VECTOR.path, VECTOR.dtype, VECTOR.row_shape)
        action = native.LeafSpec("", "int64", (), num_categories=NUM_ACTIONS)
        return native.EnvSpec("Test-v0", [observation], [action])

    def open(self, num_logits: int, core_state_size: int) -> None:
        pass

    def next_inference(self, timeout_ms: int) -> None:
        pass

    def next_rollouts(self, timeout_ms: int, min_policy_version: int) -> None:
        self.oldest_versions.append(min_policy_version)

    def stats(self) -> dict[str, int]:
        return {"streams": 0}

    def take_stream_events(self) -> list[Any]:
        return self.events

    def drain(self, finished: bool) -> None:
        self.drains.append(finished)


class PoolOfTwoThreads(IdlePool):
    """Its second inference thread fails."""

    def __init__(self) -> None:
        super().__init__()
        self._threads: set[int] = set()

    def next_inference(self, timeout_ms: int) -> None:
        self._threads.add(threading.get_ident())
        if len(self._threads) == 2:
            raise OSError("the second thread broke")


def test_an_error_of_a_later_inference_thread_reaches_the_learner() -> None:
    config = LearnerConfig(pool=PoolConfig(num_inference_threads=2))
    actors = RemoteActors(config, cast("native.ActorPool", PoolOfTwoThreads()), None)
    assert actors.wait_env_spec(0) is not None
    actors.start(make_mlp(NUM_ACTIONS), torch.device("cpu"), version=0)

    def learn() -> None:
        while True:
            actors.next_rollout(0)

    with pytest.raises(InferenceError, match="the second thread broke"):
        learn()
    with pytest.raises(InferenceError, match="the second thread broke"):
        actors.stop()


@pytest.mark.parametrize(("max_policy_lag", "oldest_versions"), [(0, [0, 0]), (3, [4, 5])])
def test_policy_lag_is_counted_from_the_newest_weights(max_policy_lag: int, oldest_versions: list[int]) -> None:
    pool = IdlePool()
    actors = RemoteActors(
        LearnerConfig(pool=PoolConfig(max_policy_lag=max_policy_lag)), cast("native.ActorPool", pool), None
    )
    assert actors.wait_env_spec(0) is not None
    actors.start(make_mlp(NUM_ACTIONS), torch.device("cpu"), version=7)
    actors.next_rollout(0)
    actors.publish(8)
    actors.next_rollout(0)
    actors.stop()
    assert pool.oldest_versions == oldest_versions


def test_draining_reaches_the_pool_and_is_known() -> None:
    pool = IdlePool()
    actors = RemoteActors(LearnerConfig(), cast("native.ActorPool", pool), None)
    assert (actors.is_draining, pool.drains) == (False, [])
    actors.drain(finished=False)
    actors.drain(finished=True)
    assert (actors.is_draining, pool.drains) == (True, [False, True])


def test_who_came_is_logged_and_who_is_waited_for_is_named(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(remote_actors, "HINT_INTERVAL_S", 0.0)
    caplog.set_level("INFO", "kubebeast_learner")
    pool = IdlePool()
    pool.events = [Event(kind="joined")]
    config = LearnerConfig(pool=PoolConfig(dial="fleet:7000-7003"))
    RemoteActors(config, cast("native.ActorPool", pool), None).check()
    assert caplog.messages == [
        "pod-3 joined from ipv4:10.0.0.3:5555: 16 of Pong-v5",
        "waiting for env-servers on fleet:7000-7003",
    ]
