"""Environments that fail and processes that die: what the learner sees of it, and that nobody else is touched."""

import json
import signal
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from numpy.typing import NDArray

from kubebeast_envserver.worker import ExitCode
from kubebeast_protos.v1 import actor_pool_pb2 as pb
from tests.integration.envserver_faults import BAD_SEED, BREAKS_AT, STEP_FAULTS
from tests.integration.envserver_learner import TIMEOUT_S, FakeLearner, StreamThread, learner, running, wait_for_log

MODULE = "tests.integration.envserver_faults"
BROKEN = BAD_SEED
"""Of 4 environments with the seeds 0 to 3."""
OTHERS = [i for i in range(4) if i != BROKEN]


def flags(message: pb.Observations, name: str) -> NDArray[np.bool_]:
    return np.frombuffer(getattr(message, name) or bytes(4), np.bool_)


def check_others(message: pb.Observations) -> None:
    """Their episodes of 3 decisions go on: a first row every 4 steps, a terminated one before it."""
    assert (flags(message, "is_first")[OTHERS] == (message.step % 4 == 0)).all()
    assert (flags(message, "terminated")[OTHERS] == (message.step % 4 == 3)).all()
    assert not flags(message, "truncated")[OTHERS].any()
    assert not flags(message, "interrupted")[OTHERS].any()
    assert [episode.env for episode in message.episodes if episode.env != BROKEN] == OTHERS * (message.step % 4 == 3)


def check_gap(hello: pb.Hello, message: pb.Observations) -> None:
    """The broken environment's row only keeps its place."""
    seen = {name: flags(message, name)[BROKEN] for name in ("interrupted", "truncated", "terminated", "is_first")}
    assert seen == {"interrupted": True, "truncated": True, "terminated": False, "is_first": False}
    assert np.frombuffer(message.rewards, np.float32)[BROKEN] == 0
    assert not np.frombuffer(message.leaves[0], np.float32).reshape(4, 2)[BROKEN].any()
    assert BROKEN not in [episode.env for episode in message.episodes]


def faulty_stream(server: FakeLearner, fault: str, **kwargs: str) -> StreamThread:
    return StreamThread(
        env=f"{MODULE}:BreaksWithSeed-v0",
        env_kwargs={"fault": fault, **kwargs},
        address=server.address,
        envs_per_stream=4,
        seed=0,
    )


@pytest.mark.parametrize("fault", STEP_FAULTS)
def test_a_step_that_fails_interrupts_one_environment_and_the_others_go_on(fault: str) -> None:
    with learner() as server, faulty_stream(server, fault):
        hello = server.next("hello")
        for step in range(BREAKS_AT):
            message = server.next("observations")
            assert (message.step, message.interrupted) == (step, b"")
            check_others(message)
        message = server.next("observations")
        while not flags(message, "is_first")[BROKEN]:
            check_others(message)
            check_gap(hello, message)
            message = server.next("observations")
        assert not flags(message, "interrupted").any()
        for _ in range(3):
            message = server.next("observations")
        assert flags(message, "terminated")[BROKEN]
        assert [(e.episode_return, e.length) for e in message.episodes if e.env == BROKEN] == [(3.0, 3)]


def test_a_reset_that_fails_at_the_start_of_a_stream_is_a_first_row_and_then_a_gap() -> None:
    with learner() as server, faulty_stream(server, "reset"):
        hello = server.next("hello")
        assert server.next("observations").is_first == b"\1\1\1\1"
        message = server.next("observations")
        check_gap(hello, message)
        while not flags(message, "is_first")[BROKEN]:
            check_others(message)
            message = server.next("observations")


def test_a_constructor_that_fails_after_the_environment_had_worked_is_tried_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with (
        learner() as server,
        faulty_stream(server, "exception", constructor_fails_once=str(tmp_path / "fail")),
    ):
        message = server.next("observations")
        while message.step <= BREAKS_AT or not flags(message, "is_first")[BROKEN]:
            check_others(message)
            message = server.next("observations")
    assert "step raised ZeroDivisionError" in caplog.text
    assert "the licence server is away" in caplog.text


def test_a_learner_without_the_word_for_it_gets_the_whole_stream_anew() -> None:
    with learner(minor=0) as server, faulty_stream(server, "nan"):
        server.next("hello")
        bye = server.next("bye")
        assert (bye.reason, f"environment {BROKEN} failed" in bye.detail) == (pb.Bye.REASON_UNSPECIFIED, True)
        server.next("hello")
        for step in range(2 * BREAKS_AT):
            assert server.next("observations").step == step


def test_environments_that_all_keep_failing_end_the_env_server(
    caplog: pytest.LogCaptureFixture,
) -> None:
    flaky = {"env": f"{MODULE}:RaisesInStep-v0", "envs_per_stream": 2, "max_failures": 3}
    with learner() as server, StreamThread(address=server.address, **flaky) as stream:
        assert stream.join() == ExitCode.FAILED
        assert server.next("bye").reason == pb.Bye.REASON_ENVIRONMENT_FAILED
    assert caplog.text.count("is given up: 3 failures") == 2
    assert "every environment failed too often" in caplog.text
    assert caplog.text.count("is made anew") == 2  # the same reason again is no news


def test_an_environment_that_keeps_failing_is_given_up_and_the_other_plays_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    options: dict[str, Any] = {
        "env": f"{MODULE}:AllButOneBreak-v0",
        "env_kwargs": {"fault": "exception", "spared": str(tmp_path / "spared")},
        "envs_per_stream": 2,
        "max_failures": 2,
    }
    with learner() as server, StreamThread(address=server.address, **options):
        while "environment 1 is given up: 2 failures" not in caplog.text:
            server.next("observations")
        for _ in range(200):
            message = server.next("observations")
        while message.step % 4:
            message = server.next("observations")
        assert (message.is_first, message.interrupted) == (b"\1\0", b"\0\1")


def faulty_process(server: FakeLearner, env: str, fault: str, file: Path, *flags: str) -> Any:
    kwargs = json.dumps({"fault": fault, "spared": str(file)})
    return running(
        f"--env={MODULE}:{env}-v0",
        f"--env-kwargs={kwargs}",
        f"--address={server.address}",
        "--envs-per-stream=1",
        *flags,
    )


@pytest.mark.parametrize("fault", ["sigkill", "segfault", "exit 1", "exit 3"])
def test_the_only_stream_process_is_replaced_when_it_dies(fault: str, tmp_path: Path) -> None:
    with learner() as server, faulty_process(server, "OnlyOneBreaks", fault, tmp_path / "once") as process:
        instance_id = server.next("hello").instance_id
        assert server.next("hello").instance_id != instance_id
        for step in range(2 * BREAKS_AT):
            assert server.next("observations").step == step
        process.send_signal(signal.SIGTERM)
        assert process.wait(TIMEOUT_S) == ExitCode.OK


def test_a_stream_process_whose_environment_hangs_says_where_and_is_replaced(tmp_path: Path) -> None:
    with (
        learner() as server,
        faulty_process(server, "OnlyOneBreaks", "hang", tmp_path / "once", "--env-timeout-s=1") as process,
    ):
        instance_id = server.next("hello").instance_id
        assert "env_timeout_s" in wait_for_log(process, "computed for more than")
        wait_for_log(process, "envserver_faults.py")
        assert server.next("hello").instance_id != instance_id
        for step in range(2 * BREAKS_AT):
            assert server.next("observations").step == step


def test_a_stream_that_keeps_dying_is_given_up_and_the_other_plays_on(tmp_path: Path) -> None:
    options = ["--num-streams=2", "--max-failures=2", "--http-address=127.0.0.1:0"]
    with (
        learner() as server,
        faulty_process(server, "AllButOneBreak", "sigkill", tmp_path / "spared", *options) as process,
    ):
        port = serving_port(process)
        wait_for_log(process, "is given up")
        assert get(port, "/healthz") == (200, "ok\n")
        assert metrics(port)["kubebeast_envserver_streams_quarantined"] == 1
        assert get(port, "/readyz") == (200, "ok\n")
        process.send_signal(signal.SIGTERM)
        assert process.wait(TIMEOUT_S) == ExitCode.OK


def test_the_env_server_fails_when_every_stream_is_given_up(tmp_path: Path) -> None:
    (tmp_path / "spared").touch()
    with (
        learner() as server,
        faulty_process(
            server, "AllButOneBreak", "sigkill", tmp_path / "spared", "--max-failures=2", "--num-streams=2"
        ) as process,
    ):
        assert process.wait(TIMEOUT_S) == ExitCode.FAILED


def test_sigterm_ends_an_env_server_that_waits_to_replace_a_process(tmp_path: Path) -> None:
    (tmp_path / "spared").touch()
    with learner() as server, faulty_process(server, "AllButOneBreak", "sigkill", tmp_path / "spared") as process:
        wait_for_log(process, "is replaced in")
        process.send_signal(signal.SIGTERM)
        assert process.wait(TIMEOUT_S) == ExitCode.OK


def test_sigterm_ends_an_env_server_whose_environments_are_all_broken() -> None:
    with (
        learner() as server,
        running("--env", f"{MODULE}:RaisesInStep-v0", "--address", server.address, "--max-failures=100") as process,
    ):
        wait_for_log(process, "is made anew")
        process.send_signal(signal.SIGTERM)
        assert server.next("bye").reason == pb.Bye.REASON_SHUTDOWN
        assert process.wait(TIMEOUT_S) == ExitCode.OK


def test_sigterm_ends_a_stream_process_that_is_stopped() -> None:
    with learner() as server, running("--env", "Mock", "--address", server.address) as process:
        server.next("observations")
        child = stream_process(process.pid)
        child.suspend()
        process.send_signal(signal.SIGTERM)
        assert process.wait(TIMEOUT_S) == ExitCode.OK
        assert not child.is_running()


def test_probes_follow_the_connection() -> None:
    with learner() as server:
        port = server.port
    flags = [f"--env={MODULE}:Well-v0", "--envs-per-stream=2", f"--address=127.0.0.1:{port}"]
    with running(*flags, "--http-address=127.0.0.1:0") as process:
        http = serving_port(process)
        assert get(http, "/healthz") == (200, "ok\n")
        assert get(http, "/readyz") == (503, f"no stream is connected: waiting for the learner at 127.0.0.1:{port}\n")
        assert get(http, "/elsewhere")[0] == 404
        with learner(port=port) as server:
            server.next("observations")
            assert get(http, "/readyz") == (200, "ok\n")
        wait_for_log(process, "lost the learner")
        assert get(http, "/readyz")[0] == 503
        assert metrics(http)['kubebeast_envserver_connects_total{outcome="lost"}'] == 1


def test_counters_outlive_the_process_that_counted() -> None:
    flags = [f"--env={MODULE}:RewardIsNotFinite-v0", "--envs-per-stream=2", "--max-failures=100"]
    with learner() as server, running(*flags, f"--address={server.address}", "--http-address=127.0.0.1:0") as process:
        port = serving_port(process)
        server.next("hello")
        started_again = np.zeros(2, np.bool_)
        while not started_again.all():
            message = server.next("observations")
            started_again |= (message.step > 0) & np.frombuffer(message.is_first, np.bool_)
        before = metrics(port)
        assert before['kubebeast_envserver_env_failures_total{kind="reward"}'] >= 2
        assert before["kubebeast_envserver_env_restarts_total"] >= 2
        assert before['kubebeast_envserver_connects_total{outcome="welcomed"}'] == 1
        assert before["kubebeast_envserver_stream_restarts_total"] == 0
        stream_process(process.pid).kill()
        server.next("hello")
        server.next("observations")
        after = metrics(port)
        assert all(after[name] >= value for name, value in before.items() if "_total" in name)
        assert after['kubebeast_envserver_env_failures_total{kind="process"}'] == 1
        assert after["kubebeast_envserver_stream_restarts_total"] == 1
        assert after["kubebeast_envserver_streams_connected"] == 1


def test_an_http_address_that_is_taken_is_reported_in_the_exit_status() -> None:
    with learner() as server, running("--env", "Mock", "--http-address", server.address) as process:
        assert server.address in wait_for_log(process, "http_address")
        assert process.wait(TIMEOUT_S) == ExitCode.USAGE


def stream_process(supervisor: int) -> psutil.Process:
    return next(p for p in psutil.Process(supervisor).children() if "spawn_main" in " ".join(p.cmdline()))


def serving_port(process: Any) -> int:
    message: str = json.loads(wait_for_log(process, "serving HTTP on port"))["message"]
    return int(message.rpartition(" ")[2])


def get(port: int, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=TIMEOUT_S) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def metrics(port: int) -> dict[str, float]:
    """Samples by name and labels, as they are written."""
    lines = [line for line in get(port, "/metrics")[1].splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}
