"""An env-server that listens serves learners that dial it with stock grpcio."""

import signal
import socket
from collections.abc import Iterator

import grpc
import numpy as np
import pytest

from harness.ports import free_address
from kubebeast_envserver.stream.connection import MAX_RECEIVED_BYTES
from kubebeast_envserver.stream.exit_code import ExitCode
from kubebeast_protos.v1 import actor_pool_pb2 as pb
from tests.integration.envserver_learner import (
    TIMEOUT_S,
    DialingLearner,
    StreamThread,
    next_log,
    running,
    wait_for_log,
    watched_log,
)

LONG_WELCOME = pb.ActResponse(welcome=pb.Welcome(run_id="long enough to be compressed " * 100)).SerializeToString()


def test_a_learner_that_dials_plays() -> None:
    address = free_address()
    with StreamThread(env="Mock", listen=address, envs_per_stream=3), DialingLearner(address) as learner:
        hello = learner.next("hello")
        assert (hello.env_id, hello.num_envs) == ("Mock", 3)
        assert [learner.next("observations").step for _ in range(20)] == list(range(20))


def test_a_second_learner_is_refused_until_the_first_one_leaves() -> None:
    address = free_address()
    with watched_log() as log, StreamThread(env="Mock", listen=address, envs_per_stream=2):
        with DialingLearner(address) as first:
            instance_id = first.next("hello").instance_id
            first.next("observations")
            with DialingLearner(address) as second:
                assert second.status() == (grpc.StatusCode.RESOURCE_EXHAUSTED, "this env-server's stream is taken")
            steps = [first.next("observations").step for _ in range(3)]
            assert steps == list(range(steps[0], steps[0] + 3))
        next_log(log, "lost the learner")
        with DialingLearner(address) as third:
            assert third.next("hello").instance_id == instance_id
            message = third.next("observations")
            assert (message.step, message.is_first) == (0, b"\1\1")


def test_a_shutdown_says_bye_while_the_learner_is_silent() -> None:
    address = free_address()
    learner = DialingLearner(address, answer=lambda hello, observations: None)
    with StreamThread(env="Mock", listen=address) as stream, learner:
        learner.next("observations")
        stream.shutdown.request()
        assert learner.next("bye").reason == pb.Bye.REASON_SHUTDOWN
        assert learner.status() == (grpc.StatusCode.OK, "")
        assert stream.join() == ExitCode.OK


def test_a_shutdown_ends_the_wait_for_a_learner() -> None:
    with watched_log() as log, StreamThread(env="Mock", listen=free_address()) as stream:
        next_log(log, "listening on")
        stream.shutdown.request()
        assert stream.join() == ExitCode.OK


@pytest.mark.parametrize("before_welcome", [True, False])
def test_an_end_with_a_refusal_is_final_and_its_reason_is_logged(before_welcome: bool) -> None:
    address = free_address()
    end = pb.ActResponse(end=pb.End(code=grpc.StatusCode.FAILED_PRECONDITION.value[0], detail="another shape"))
    learner = DialingLearner(address, answer=lambda hello, observations: end)
    if before_welcome:
        learner.welcome = lambda hello: end  # type: ignore[method-assign]
    with watched_log() as log, StreamThread(env="Mock", listen=address) as stream, learner:
        assert "FAILED_PRECONDITION: another shape" in next_log(log, "refuses")
        assert stream.join() == ExitCode.REFUSED


@pytest.mark.parametrize("code", [grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.INTERNAL])
def test_after_any_other_end_the_next_learner_plays(code: grpc.StatusCode) -> None:
    address = free_address()
    end = pb.ActResponse(end=pb.End(code=code.value[0], detail="not now"))
    with watched_log() as log, StreamThread(env="Mock", listen=address):
        with DialingLearner(address, answer=lambda hello, observations: end) as learner:
            assert learner.status()[0] == grpc.StatusCode.OK
        assert f"{code.name}: not now" in next_log(log, "lost the learner")
        with DialingLearner(address) as learner:
            assert learner.next("observations").step == 0


def test_another_major_version_is_refused_on_both_sides() -> None:
    address = free_address()
    learner = DialingLearner(address)
    learner.welcome = lambda hello: pb.ActResponse(  # type: ignore[method-assign]
        welcome=pb.Welcome(protocol_version=2, compression=hello.offered_compression)
    )
    with watched_log() as log, StreamThread(env="Mock", listen=address) as stream, learner:
        reason = "Welcome.protocol_version is 2, expected 1"
        assert learner.status() == (grpc.StatusCode.FAILED_PRECONDITION, reason)
        assert reason in next_log(log, "refuses")
        assert stream.join() == ExitCode.REFUSED


def says_nothing(requests: Iterator[pb.ActRequest]) -> Iterator[pb.ActResponse]:
    list(requests)
    return iter(())


def test_a_learner_that_says_nothing_gives_way() -> None:
    address = free_address()
    silent = DialingLearner(address)
    silent.talk = says_nothing  # type: ignore[method-assign]
    with watched_log() as log, StreamThread(env="Mock", listen=address, welcome_timeout_s=0.2):
        with silent:
            assert silent.status()[0] == grpc.StatusCode.CANCELLED
        next_log(log, "no Welcome within 0.2 s")
        with DialingLearner(address) as learner:
            assert learner.next("observations").step == 0


def test_actions_that_break_the_contract_end_the_stream_only() -> None:
    address = free_address()
    with watched_log() as log, StreamThread(env="Mock", listen=address, envs_per_stream=2):
        wrong_step = pb.ActResponse(actions=pb.Actions(step=7))
        with DialingLearner(address, answer=lambda hello, observations: wrong_step) as learner:
            assert learner.status() == (grpc.StatusCode.INVALID_ARGUMENT, "Actions.step is 7, expected 0")
        next_log(log, "Actions.step is 7")
        with DialingLearner(address) as learner:
            assert [learner.next("observations").step for _ in range(3)] == [0, 1, 2]


@pytest.mark.parametrize("compression", [grpc.Compression.NoCompression, grpc.Compression.Gzip])
def test_bytes_that_are_no_message_end_the_stream_and_the_next_learner_plays(compression: grpc.Compression) -> None:
    address = free_address()
    bad = b"\xff" * 100 if compression is grpc.Compression.NoCompression else LONG_WELCOME
    with watched_log() as log, StreamThread(env="Mock", listen=address):
        next_log(log, "listening on")
        with grpc.insecure_channel(address, compression=compression) as channel:
            play = channel.stream_stream("/kubebeast.v1.EnvServer/Play", bytes, bytes)
            with pytest.raises(grpc.RpcError, match=r"INVALID_ARGUMENT.*\s.*malformed, or compressed by gRPC"):
                list(play(iter([bad]), timeout=TIMEOUT_S))
        assert "malformed" in next_log(log, "lost the learner")
        with DialingLearner(address) as learner:
            learner.next("observations")


def test_a_learner_that_vanishes_makes_room() -> None:
    address = free_address()
    with watched_log() as log, StreamThread(env="Mock", listen=address) as stream:
        with DialingLearner(address, answer=lambda hello, observations: None) as learner:
            learner.next("observations")
            learner.call.cancel()
            next_log(log, "lost the learner")
        with DialingLearner(address) as learner:
            assert learner.next("observations").step == 0
            assert (stream.status.connects_welcomed, stream.status.connects_lost, stream.status.connected) == (2, 1, 1)


def test_an_address_in_use_is_named(caplog: pytest.LogCaptureFixture) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        address = f"127.0.0.1:{other.getsockname()[1]}"
        with StreamThread(env="Mock", listen=address) as stream:
            assert stream.join() == ExitCode.USAGE
    assert f"listen = '{address}'" in caplog.text


def test_the_health_service_answers_for_the_contract_only() -> None:
    address = free_address()
    with (
        watched_log() as log,
        StreamThread(env="Mock", listen=address),
        grpc.insecure_channel(address) as channel,
    ):
        next_log(log, "listening on")
        check = channel.unary_unary("/grpc.health.v1.Health/Check", None, None)
        name = b"kubebeast.v1.EnvServer"
        assert {check(b""), check(b"\x0a" + bytes([len(name)]) + name)} == {b"\x08\x01"}
        with pytest.raises(grpc.RpcError) as error:
            check(b"\x0a\x01x")
        assert error.value.code() == grpc.StatusCode.NOT_FOUND


def test_a_compressed_message_is_never_inflated() -> None:
    address = free_address()
    too_large = bytes(MAX_RECEIVED_BYTES + 1)
    with watched_log() as log, StreamThread(env="Mock", listen=address):
        next_log(log, "listening on")
        options = [("grpc.max_send_message_length", -1)]
        with grpc.insecure_channel(address, options, grpc.Compression.Gzip) as channel:
            check = channel.unary_unary("/grpc.health.v1.Health/Check", bytes, bytes)
            with pytest.raises(grpc.RpcError) as caught:
                check(too_large, timeout=TIMEOUT_S)
    assert caught.value.code() is grpc.StatusCode.NOT_FOUND, "a few kilobytes of a name, not a message over the limit"


def test_every_stream_of_a_process_listens_on_a_port_of_its_own() -> None:
    host, _, port = free_address().rpartition(":")
    with (
        running("--env", "Mock", "--listen", f"{host}:{port}", "--num-streams", "2") as process,
        DialingLearner(f"{host}:{port}", answer=lambda hello, observations: None) as first,
        DialingLearner(f"{host}:{int(port) + 1}", answer=lambda hello, observations: None) as second,
    ):
        assert first.next("hello").instance_id != second.next("hello").instance_id
        flags = [np.frombuffer(learner.next("observations").is_first, np.bool_) for learner in (first, second)]
        assert np.all(flags)
        process.send_signal(signal.SIGTERM)
        assert [learner.next("bye").reason for learner in (first, second)] == [pb.Bye.REASON_SHUTDOWN] * 2
        assert process.wait(TIMEOUT_S) == ExitCode.OK


def test_sigterm_ends_a_process_that_waits_for_a_learner() -> None:
    with running("--env", "Mock", "--listen", free_address()) as process:
        wait_for_log(process, "listening on")
        process.send_signal(signal.SIGTERM)
        assert process.wait(TIMEOUT_S) == ExitCode.OK
