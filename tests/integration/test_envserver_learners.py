"""A stream may play with several learners, which are made of stock grpcio and the generated stubs."""

import contextlib
from collections.abc import Callable, Iterator

import pytest

from harness.ports import free_address
from kubebeast_envserver.stream import learners, session
from kubebeast_protos.v1 import actor_pool_pb2 as pb
from tests.integration.envserver_learner import StreamThread, learner, next_log, watched_log


def test_a_stream_plays_with_another_learner_until_its_own_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learners, "PATIENCE_S", 0.0)
    monkeypatch.setattr(learners, "LOOK_EVERY_S", 0.01)
    monkeypatch.setattr(learners, "by_preference", lambda instance_id, known: list(known))
    monkeypatch.setattr(session, "LEAVE_WITHIN_S", 0.0)
    home = free_address()
    with (
        watched_log() as log,
        learner() as other,
        StreamThread(env="Mock", address=f"{home}, {other.address}", envs_per_stream=1),
    ):
        assert other.next("observations").step == 0
        with learner(port=int(home.rpartition(":")[2])) as own:
            next_log(log, f"leaving the learner at {other.address}")
            assert other.next("bye").reason == pb.Bye.REASON_SHUTDOWN
            assert own.next("observations").step == 0
        next_log(log, f"lost the learner at {home}")
        assert other.next("observations").step == 0


def test_a_stream_that_is_to_leave_ends_its_episodes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    leaving: list[Callable[[], None]] = []

    @contextlib.contextmanager
    def calling_home(found: learners.Learners, learner: learners.Learner, leave: Callable[[], None]) -> Iterator[None]:
        leaving.append(leave)
        yield

    monkeypatch.setattr(learners.Learners, "calling_home", calling_home)
    monkeypatch.setattr(learners.Learners, "note_welcome", lambda found: leaving[-1]())
    with (
        learner() as server,
        StreamThread(env="Mock", address=server.address, envs_per_stream=1, env_kwargs={"episode_length": 5}),
    ):
        rows = [server.next("observations") for _ in range(6)]
        assert [row.step for row in rows] == list(range(6))
        assert [row.terminated for row in rows] == [b"\0"] * 5 + [b"\1"]
        assert server.next("bye").reason == pb.Bye.REASON_SHUTDOWN
        assert server.next("observations").step == 0


def test_a_stream_that_is_to_leave_does_not_wait_for_a_learner_that_is_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    leaving: list[Callable[[], None]] = []

    @contextlib.contextmanager
    def calling_home(found: learners.Learners, learner: learners.Learner, leave: Callable[[], None]) -> Iterator[None]:
        leaving.append(leave)
        yield

    monkeypatch.setattr(learners.Learners, "calling_home", calling_home)
    monkeypatch.setattr(session, "SILENT_S", 0.1)
    with (
        learner(answer=lambda hello, observations: None) as server,
        StreamThread(env="Mock", address=server.address, envs_per_stream=1),
    ):
        assert server.next("observations").step == 0
        leaving[-1]()
        assert server.next("bye").reason == pb.Bye.REASON_SHUTDOWN
        assert server.next("observations").step == 0
