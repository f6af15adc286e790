"""A session plays one stream with a learner made of stock grpcio and the generated stubs."""

import dataclasses
import queue
import socket
from typing import Any

import grpc
import numpy as np
import pytest
from numpy.typing import NDArray

from kubebeast_common.backoff import Backoff
from kubebeast_common.spec.env_config import Wrapper
from kubebeast_envserver.rows.rows import EnvironmentFailure, StepRows
from kubebeast_envserver.stream.exit_code import ExitCode
from kubebeast_envserver.stream.session import Identity, Session
from kubebeast_envserver.stream.transport import open_stream
from kubebeast_protos.v1 import PROTOCOL_MINOR, PROTOCOL_VERSION
from kubebeast_protos.v1 import actor_pool_pb2 as pb
from tests.integration.envserver_learner import (
    StreamThread,
    frames,
    learner,
    next_log,
    watched_log,
    zeros,
)
from tests.unit.envserver.envs.scripted_env import ScriptedEnv

pytestmark = pytest.mark.usefixtures("transport")

MODULE = "tests.integration.envserver_faults"


def test_hello_describes_the_environments() -> None:
    with (
        learner() as server,
        StreamThread(env="Mock", address=server.address, envs_per_stream=3, env_server_id="pod-7"),
    ):
        hello = server.next("hello")
    assert (hello.protocol_version, hello.protocol_minor) == (PROTOCOL_VERSION, PROTOCOL_MINOR)
    assert (hello.env_server_id, hello.env_id, hello.num_envs) == ("pod-7", "Mock", 3)
    assert len(hello.instance_id) >= 32
    frame = pb.LeafSpec(dtype="DTYPE_UINT8", shape=[84, 84], frame_stack=4)
    assert list(hello.observation) == [frame]
    assert list(hello.action) == [pb.LeafSpec(dtype="DTYPE_INT64", frame_stack=1, num_categories=6)]
    assert list(hello.offered_compression) == [pb.COMPRESSION_LZ4]


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"env": "Mock", "env_kwargs": {"num_actions": 3}}, '{"kwargs":{"num_actions":3},"preset":"none"}'),
        (
            {"env": "Pong-v4", "env_kwargs": {"frameskip": 2}},
            '{"kwargs":{"frameskip":2},"preset":"atari-v4"}',
        ),
        ({"env": "CartPole-v1"}, '{"kwargs":{},"preset":"none"}'),
        (
            {"env": "CartPole-v1", "wrappers": (Wrapper("gymnasium.wrappers:FlattenObservation"),), "time_limit": 5},
            '{"kwargs":{},"preset":"none","time_limit":5,"wrappers":["gymnasium.wrappers:FlattenObservation"]}',
        ),
    ],
)
def test_hello_tells_how_the_environments_are_made(settings: dict[str, Any], told: str) -> None:
    with learner() as server, StreamThread(address=server.address, envs_per_stream=1, **settings):
        assert server.next("hello").env_config == told


def test_arguments_too_long_to_tell_are_played_all_the_same(caplog: pytest.LogCaptureFixture) -> None:
    settings: dict[str, Any] = {"env": f"{MODULE}:Annotated-v0", "env_kwargs": {"note": "x" * 9000}}
    with learner() as server, StreamThread(address=server.address, envs_per_stream=1, **settings):
        assert server.next("hello").env_config == ""
        server.next("observations")
    assert "the settings of the environment cannot be sent" in caplog.text


@pytest.mark.parametrize("compression", ["lz4", "none"])
def test_a_game_is_told_with_the_sum_of_its_rewards(compression: str) -> None:
    with (
        learner() as server,
        StreamThread(
            env="Mock",
            address=server.address,
            envs_per_stream=4,
            env_kwargs={"episode_length": 7},
            compression=compression,
        ),
    ):
        hello = server.next("hello")
        returns = np.zeros(4)
        num_episodes = 0
        for _ in range(40):
            message = server.next("observations")
            returns += np.frombuffer(message.rewards, np.float32)
            assert frames(hello, message, 0).shape[1:] == (84, 84)
            for episode in message.episodes:
                assert episode.episode_return == returns[episode.env]
                assert 1 <= episode.length <= 7
                returns[episode.env] = 0.0
                num_episodes += 1
        assert num_episodes >= 16


def test_the_environments_tell_their_time_when_they_are_asked() -> None:
    def traced_after_step_1(hello: pb.Hello, observations: pb.Observations) -> pb.ActResponse:
        response = zeros(hello, observations)
        response.actions.traced = observations.step == 1
        return response

    with learner(answer=traced_after_step_1) as server, StreamThread(env="Mock", address=server.address):
        env_us = [server.next("observations").env_us for _ in range(4)]
    assert env_us[2] > 0
    assert (env_us[0], env_us[1], env_us[3]) == (0, 0, 0)


def test_a_shutdown_says_bye_while_the_learner_is_silent() -> None:
    with learner() as server:
        server.answer = lambda hello, observations: None
        with StreamThread(env="Mock", address=server.address, envs_per_stream=2) as stream:
            server.next("observations")
            stream.shutdown.request()
            assert server.next("bye").reason == pb.Bye.REASON_SHUTDOWN
            assert stream.join() == ExitCode.OK


@pytest.mark.parametrize(
    "code",
    [
        grpc.StatusCode.FAILED_PRECONDITION,
        grpc.StatusCode.INVALID_ARGUMENT,
        grpc.StatusCode.UNAUTHENTICATED,
        grpc.StatusCode.PERMISSION_DENIED,
        grpc.StatusCode.UNIMPLEMENTED,
    ],
)
def test_a_refusal_is_final_and_its_reason_is_logged(code: grpc.StatusCode, caplog: pytest.LogCaptureFixture) -> None:
    with (
        learner(refuse=(code, "leaf 'image' has shape [1]")) as server,
        StreamThread(env="Mock", address=server.address) as stream,
    ):
        assert stream.join() == ExitCode.REFUSED
        assert "leaf 'image' has shape [1]" in caplog.text
        assert (stream.status.connects_refused, stream.status.connects_welcomed) == (1, 0)


@pytest.mark.parametrize(
    "code",
    [
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.INTERNAL,
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        grpc.StatusCode.DEADLINE_EXCEEDED,
        grpc.StatusCode.CANCELLED,
    ],
)
def test_a_passing_error_is_dialed_again(code: grpc.StatusCode) -> None:
    with (
        learner(refuse=(code, "not now")) as server,
        StreamThread(env="Mock", address=server.address, envs_per_stream=1),
    ):
        server.next("hello")
        server.refuse = None
        assert server.next("observations").step == 0


def test_a_restarted_learner_gets_new_episodes_of_the_same_instance() -> None:
    with learner() as first, StreamThread(env="Mock", address=first.address, envs_per_stream=2) as stream:
        instance_id = first.next("hello").instance_id
        for _ in range(5):
            first.next("observations")
        first.stop()
        with learner(port=first.port) as second:
            assert second.next("hello").instance_id == instance_id
            message = second.next("observations")
            assert message.step == 0
            assert message.is_first == b"\1\1"
            assert (stream.status.connects_welcomed, stream.status.connects_lost, stream.status.connected) == (2, 1, 1)
            stream.shutdown.request()
            assert stream.join() == ExitCode.OK
        assert (stream.status.connects_lost, stream.status.connected) == (1, 0)


def test_a_listener_that_never_speaks_is_dialed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kubebeast_envserver.stream.connection.CONNECT_TIMEOUT_MS", 200)
    with watched_log() as log, socket.socket() as mute:
        mute.bind(("127.0.0.1", 0))
        mute.listen()
        with StreamThread(env="Mock", address=f"127.0.0.1:{mute.getsockname()[1]}"):
            for _ in range(2):
                next_log(log, "waiting for the learner")


def test_dialing_ends_after_max_redials() -> None:
    with learner() as server:
        address = server.address
    with StreamThread(env="Mock", address=address, max_redials=2) as stream:
        assert stream.join() == ExitCode.UNREACHABLE


def test_actions_that_break_the_contract_end_the_stream_only() -> None:
    def out_of_range(hello: pb.Hello, observations: pb.Observations) -> pb.ActResponse:
        actions = np.full(hello.num_envs, 6, "<i8").tobytes()
        return pb.ActResponse(actions=pb.Actions(step=observations.step, leaves=[actions]))

    with learner() as server:
        server.answer = out_of_range
        with StreamThread(env="Mock", address=server.address, envs_per_stream=2):
            server.next("hello")
            server.next("observations")
            server.answer = zeros
            server.next("hello")
            assert [server.next("observations").step for _ in range(3)] == [0, 1, 2]


@pytest.mark.parametrize(
    ("env", "reason"),
    [("RaisesInStep", "the emulator is on fire"), ("RewardIsNotFinite", "nan"), ("CannotBeMade", "no licence file")],
)
def test_an_environment_that_keeps_failing_ends_the_env_server(
    env: str, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    with learner() as server:
        with StreamThread(
            env=f"{MODULE}:{env}-v0", address=server.address, envs_per_stream=2, max_failures=2
        ) as stream:
            assert stream.join() == ExitCode.FAILED
        assert reason in caplog.text
        if env != "CannotBeMade":
            bye = server.next("bye")
            assert bye.reason == pb.Bye.REASON_ENVIRONMENT_FAILED
            assert reason in bye.detail


class BreaksInRow2(ScriptedEnv):
    """A vector with an environment 1 that fails on arrival at row 2."""

    def _rows(self, is_first: NDArray[np.bool_]) -> StepRows:
        rows = super()._rows(is_first)
        if self._n != 2:
            return rows
        broken = np.array([False, True])
        return dataclasses.replace(
            rows,
            rewards=np.where(broken, 0, rows.rewards).astype(np.float32),
            truncated=rows.truncated | broken,
            interrupted=broken,
            failures=[(1, "the emulator\nis on fire" + 300 * "!")],
        )


def play(env: Any, address: str) -> None:
    identity = Identity(env_server_id="pod-0", instance_id="1", env_id="Test-v0")
    with open_stream(address) as stream:
        Session(stream, env, identity, lz4=True, welcome_timeout_s=60.0).run()


def test_a_learner_that_knows_no_interruption_gets_a_planned_end() -> None:
    with learner(minor=0) as server:
        with pytest.raises(EnvironmentFailure, match="environment 1 failed: the emulator"):
            play(BreaksInRow2(), server.address)
        bye = server.next("bye")
    assert bye.reason == pb.Bye.REASON_UNSPECIFIED
    assert bye.detail.startswith("environment 1 failed: the emulator is on fire!!!")
    assert len(bye.detail) == 200


class FailsTogether(ScriptedEnv):
    def step(self, actions: list[NDArray[Any]]) -> StepRows:
        raise EnvironmentFailure("the emulators are on fire")


def test_environments_that_fail_together_end_the_stream_with_the_reason() -> None:
    with learner() as server:
        with pytest.raises(EnvironmentFailure):
            play(FailsTogether(), server.address)
        assert server.next("bye") == pb.Bye(reason=pb.Bye.REASON_ENVIRONMENT_FAILED, detail="the emulators are on fire")


def test_another_major_version_of_the_learner_is_final() -> None:
    with watched_log() as log, learner() as server:
        server.welcome = lambda hello: pb.ActResponse(welcome=pb.Welcome(protocol_version=2))  # type: ignore[method-assign]
        with StreamThread(env="Mock", address=server.address) as stream:
            assert "Welcome.protocol_version is 2, expected 1" in next_log(log, "refuses")
            assert stream.join() == ExitCode.REFUSED


@pytest.mark.parametrize("run", ["", "test"])
def test_the_learner_receives_the_run_that_the_env_server_serves(run: str) -> None:
    with learner() as server, StreamThread(env="Mock", address=server.address, envs_per_stream=1, run=run):
        assert server.next("hello").run == run
        assert server.next("observations").step == 0


def test_an_older_learner_of_another_run_is_final() -> None:
    with (
        watched_log() as log,
        learner(minor=4) as server,
        StreamThread(env="Mock", address=server.address, run="pong") as stream,
    ):
        assert "trains the run 'test', this env-server serves 'pong'" in next_log(log, "refuses")
        assert stream.join() == ExitCode.REFUSED


def test_a_learner_that_never_welcomes_is_dialed_again() -> None:
    with watched_log() as log, learner() as server:
        welcome = server.welcome
        server.welcome = lambda hello: pb.ActResponse()  # type: ignore[method-assign]
        with StreamThread(env="Mock", address=server.address, envs_per_stream=1):
            next_log(log, "ProtocolError: the first response is not a Welcome")
            server.welcome = welcome  # type: ignore[method-assign]
            assert server.next("observations").step == 0


def test_being_welcomed_and_lost_again_and_again_slows_the_dialing_down(monkeypatch: pytest.MonkeyPatch) -> None:
    tries: queue.SimpleQueue[int] = queue.SimpleQueue()

    class Recorded(Backoff):
        def next_delay_s(self) -> float:
            tries.put(self.tries)
            return super().next_delay_s()

    monkeypatch.setattr("kubebeast_envserver.stream.dialer.Backoff", Recorded)
    with learner() as server:
        server.answer = lambda hello, observations: pb.ActResponse()
        with StreamThread(env="Mock", address=server.address, envs_per_stream=1):
            assert [tries.get(timeout=60.0) for _ in range(4)] == [0, 1, 2, 3]
            monkeypatch.setattr("kubebeast_envserver.stream.dialer.STEADY_S", 0.0)
            while tries.get(timeout=60.0) != 0:
                pass
