"""One stream against a learner made of stock grpcio and the generated stubs."""

import grpc
import numpy as np
import pytest

from kubebeast_envserver.worker import ExitCode
from kubebeast_protos.v1 import PROTOCOL_VERSION
from kubebeast_protos.v1 import actor_pool_pb2 as pb
from tests.integration.envserver_learner import StreamThread, frames, learner, zeros

MODULE = "tests.integration.envserver_faults"


def test_hello_describes_the_environments() -> None:
    with (
        learner() as server,
        StreamThread(env="Mock", address=server.address, envs_per_stream=3, env_server_id="pod-7"),
    ):
        hello = server.next("hello")
    assert hello.protocol_version == PROTOCOL_VERSION
    assert (hello.env_server_id, hello.env_id, hello.num_envs) == ("pod-7", "Mock", 3)
    assert len(hello.instance_id) >= 32
    frame = pb.LeafSpec(dtype="DTYPE_UINT8", shape=[84, 84], frame_stack=4)
    assert list(hello.observation) == [frame]
    assert list(hello.action) == [pb.LeafSpec(dtype="DTYPE_INT64", frame_stack=1, num_categories=6)]
    assert list(hello.offered_compression) == [pb.COMPRESSION_LZ4]


@pytest.mark.parametrize("compression", ["lz4", "none"])
def test_every_message_keeps_the_contract(compression: str) -> None:
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
        final = np.ones(4, np.bool_)
        returns = np.zeros(4)
        num_episodes = 0
        for step in range(40):
            message = server.next("observations")
            is_first, terminated, truncated = (
                np.frombuffer(flags, np.bool_) for flags in (message.is_first, message.terminated, message.truncated)
            )
            rewards = np.frombuffer(message.rewards, np.float32)
            assert message.step == step
            assert (is_first == final).all()
            assert not rewards[is_first].any()
            assert frames(hello, message, 0).shape == (4 + 3 * is_first.sum(), 84, 84)
            returns += rewards
            final = terminated | truncated
            assert [episode.env for episode in message.episodes] == list(np.flatnonzero(final))
            for episode in message.episodes:
                assert episode.episode_return == returns[episode.env]
                assert 1 <= episode.length <= 7
                returns[episode.env] = 0.0
                num_episodes += 1
        assert num_episodes >= 16


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
def test_a_passing_error_is_dialled_again(code: grpc.StatusCode) -> None:
    with (
        learner(refuse=(code, "not now")) as server,
        StreamThread(env="Mock", address=server.address, envs_per_stream=1),
    ):
        server.next("hello")
        server.refuse = None
        assert server.next("observations").step == 0


def test_a_restarted_learner_gets_new_episodes_of_the_same_instance() -> None:
    with learner() as first, StreamThread(env="Mock", address=first.address, envs_per_stream=2):
        instance_id = first.next("hello").instance_id
        for _ in range(5):
            first.next("observations")
        first.stop()
        with learner(port=first.port) as second:
            assert second.next("hello").instance_id == instance_id
            message = second.next("observations")
            assert message.step == 0
            assert message.is_first == b"\1\1"


def test_dialling_ends_after_max_redials() -> None:
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
            for _ in range(2):
                assert reason in server.next("bye").detail
