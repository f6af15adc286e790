"""Env-servers act for a training: settings and listening address reach the pool, errors reach the learner."""

import contextlib
import threading
from collections.abc import Iterator, Sequence
from concurrent import futures
from pathlib import Path
from typing import Any, cast

import grpc
import pytest
import torch

import kubebeast_native as native
from kubebeast_common.spec.env_config import EnvConfig
from kubebeast_common.spec.env_spec import EnvSpec
from kubebeast_common.spec.leaves import Leaf
from kubebeast_learner.actors.pool_thread import InferenceError
from kubebeast_learner.actors.remote import actors as remote_actors
from kubebeast_learner.actors.remote.actors import RemoteActors, make_pool
from kubebeast_learner.config import CurriculumConfig, LearnerConfig, PoolConfig, ReplayConfig, RolloutConfig, RunConfig
from tests.unit.common.pool.test_stream_log import Event
from tests.unit.learner.algorithm.learning_data import VECTOR, make_mlp
from tests.unit.native.native_client import CORE_STATE_SIZE, NUM_LOGITS, PATIENCE_MS, SPEC, Client, next_batch

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
        run=RunConfig(xpid="pong", log_info=("success",)),
        rollout=RolloutConfig(unroll_length=8, batch_size=10),
        replay=ReplayConfig(replay_share=0.3),
        curriculum=CurriculumConfig(curriculum="uniform", levels="[{}]"),
        pool=pool,
    )
    assert cast("Any", make_pool(config, "host:1")) == {
        "address": "host:1",
        "run_id": "pong",
        "log_info": ("success",),
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
        "opening_env": "",
        "task_shares": [],
        "episode_options": True,
        "opponents": False,
        "turns": True,
    }


def test_the_queue_that_is_shown_is_the_pools() -> None:
    config = LearnerConfig(
        run=RunConfig(xpid="run"), rollout=RolloutConfig(batch_size=10), replay=ReplayConfig(replay_share=0.3)
    )
    pool = make_pool(config, "127.0.0.1:0")
    assert RemoteActors(config, pool, None).stats()["rollout_queue_capacity"] == 2 * 7


def test_an_expected_environment_is_known_before_anybody_came() -> None:
    stacked, scalar = Leaf("screen", "uint8", (84, 84), 4, 0), Leaf("", "float32", (), 1, 0)
    config = EnvConfig(preset="none", kwargs={"size": 5})
    expected = EnvSpec("Test-v0", (stacked, scalar), (Leaf("action", "int64", (), 1, 6),), config)
    pool = make_pool(LearnerConfig(run=RunConfig(xpid="run")), "127.0.0.1:0", expected)
    actors = RemoteActors(LearnerConfig(), pool, None)
    assert actors.wait_env_spec(0) == expected


@contextlib.contextmanager
def greeted(env_config: str, minor: int) -> Iterator[tuple[RemoteActors, native.ActorPool]]:
    """Yields actors with their first env-server welcomed, and their pool."""
    config = LearnerConfig(run=RunConfig(xpid="run"))
    with contextlib.closing(make_pool(config, "127.0.0.1:0")) as pool:
        pool.start()
        client = Client(pool.address)
        greeting = threading.Thread(target=client.hello, args=(env_config, minor))
        greeting.start()
        actors = RemoteActors(config, pool, None)
        assert actors.wait_env_spec(PATIENCE_MS) is not None
        pool.open(NUM_LOGITS, CORE_STATE_SIZE)
        greeting.join()
        yield actors, pool
        client.close()


def test_the_first_stream_tells_how_the_environment_is_made() -> None:
    with greeted('{"kwargs":{"size":5},"preset":"none"}', minor=3) as (actors, _):
        spec = actors.wait_env_spec(0)
    assert spec is not None and spec.env_config == EnvConfig(preset="none", kwargs={"size": 5})
    assert EnvSpec.from_plain(spec.to_plain()) == spec


@pytest.mark.parametrize("minor", [0, 1, 2])
def test_env_servers_of_older_minor_versions_tell_nothing_and_are_welcome(minor: int) -> None:
    with greeted("", minor) as (actors, _):
        spec = actors.wait_env_spec(0)
    assert spec is not None and spec.env_config is None


def test_an_env_config_that_is_no_json_keeps_no_stream_out(caplog: pytest.LogCaptureFixture) -> None:
    with greeted("size=5", minor=3) as (actors, _):
        spec = actors.wait_env_spec(0)
        actors.check()
    assert spec is not None and spec.env_config is None
    assert any("env_config cannot be read" in message for message in caplog.messages)


def test_a_stream_with_another_task_plays_and_is_named_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with greeted('{"kwargs":{"size":5},"preset":"none"}', minor=3) as (actors, pool):
        other = Client(pool.address)
        other.hello('{"kwargs":{"size":15},"preset":"none"}')
        actors.check()
        other.close()
    (warning,) = [message for message in caplog.messages if "another task" in message]
    assert '{"size": 15}' in warning and '{"size": 5}' in warning


def test_only_the_opening_environment_begins_a_run() -> None:
    config = LearnerConfig(run=RunConfig(xpid="run"))
    with contextlib.closing(make_pool(config, "127.0.0.1:0", opening_env="Other-v0")) as pool:
        pool.start()
        client = Client(pool.address)
        with pytest.raises(grpc.RpcError) as refusal:
            client.hello()
        client.close()
        assert pool.wait_env_spec(0) is None
    assert refusal.value.code() is grpc.StatusCode.UNAVAILABLE
    assert "first env-server of Other-v0, this one has Test-v0" in str(refusal.value)


def test_who_brought_a_refused_environment_receives_the_reason_and_the_next_one_decides() -> None:
    config = LearnerConfig(run=RunConfig(xpid="run"))
    with contextlib.closing(make_pool(config, "127.0.0.1:0")) as pool:
        pool.start()
        actors = RemoteActors(config, pool, None, is_environment_named=False)
        with futures.ThreadPoolExecutor(1) as greeting:
            client = Client(pool.address)
            greeted = greeting.submit(client.hello)
            assert actors.wait_env_spec(PATIENCE_MS) is not None
            actors.refuse("no model takes it")
            with pytest.raises(grpc.RpcError) as refusal:
                greeted.result()
            code, details = refusal.value.code(), refusal.value.details()
            client.close()
        assert (code, details) == (grpc.StatusCode.FAILED_PRECONDITION, "no model takes it")
        assert actors.wait_env_spec(0) is None
        actors.check()
        pool.expect(SPEC)
        assert actors.wait_env_spec(0) is not None


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
    """A native pool without env-servers; records its calls."""

    address = ""

    def __init__(self) -> None:
        self.oldest_versions: list[int] = []
        self.drains: list[bool] = []
        self.events: list[Any] = []

    def wait_env_spec(self, timeout_ms: int) -> native.EnvSpec:
        observation = native.LeafSpec(VECTOR.path, VECTOR.dtype, VECTOR.row_shape)
        action = native.LeafSpec("", "int64", (), num_categories=NUM_ACTIONS)
        return native.EnvSpec("Test-v0", [observation], [action])

    def open(self, num_logits: int, core_state_size: int, interleaved: Sequence[bool], single_frames: bool) -> None:
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
    """The second inference thread fails."""

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
    caplog.set_level("INFO")
    pool = IdlePool()
    pool.events = [Event(kind="joined", env_id="Test-v0")]
    config = LearnerConfig(pool=PoolConfig(dial="fleet:7000-7003"))
    RemoteActors(config, cast("native.ActorPool", pool), None).check()
    assert caplog.messages == [
        "pod-3 joined from ipv4:10.0.0.3:5555: 16 of Test-v0",
        "waiting for env-servers on fleet:7000-7003",
    ]
