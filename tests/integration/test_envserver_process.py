"""The env-server as a process handles signals, exit status and several streams."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import grpc
import psutil
import pytest

from harness.ports import free_address
from kubebeast_envserver.process.worker import ExitCode
from kubebeast_protos.v1 import actor_pool_pb2 as pb
from tests.child_processes import SPAWNED, children
from tests.integration.envserver_learner import ROOT, TIMEOUT_S, learner, running, wait_for_log

pytestmark = pytest.mark.usefixtures("transport")

MODULE = "tests.integration.envserver_faults"
TIDY_GAME = """
import atexit, os
from kubebeast_envserver import catch

class Global:
    def __del__(self, mkdir=os.mkdir):
        mkdir("finalized")

left_to_the_interpreter = Global()
atexit.register(os.mkdir, "hook")
"""
"""A module with a global object that is deleted when the interpreter is finalized."""


def test_sigterm_says_bye_and_exits_with_0() -> None:
    with learner() as server, running("--env", "Mock", "--address", server.address) as process:
        server.next("observations")
        process.send_signal(signal.SIGTERM)
        assert server.next("bye").reason == pb.Bye.REASON_SHUTDOWN
        assert process.wait(TIMEOUT_S) == ExitCode.OK


def test_sigterm_in_the_middle_of_a_step_sends_its_rows_before_the_bye() -> None:
    flags = ("--env", f"{MODULE}:IsToldToEnd-v0", "--envs-per-stream", "1")
    with learner() as server, running(*flags, "--address", server.address):
        server.next("hello")
        assert [server.next("observations").step for _ in range(3)] == [0, 1, 2]
        request = server.received.get(timeout=TIMEOUT_S)
        assert request.bye.reason == pb.Bye.REASON_SHUTDOWN


def test_it_leaves_after_max_steps_with_all_rows_sent() -> None:
    with learner() as server, running("--env", "Mock", "--max-steps", "3", "--address", server.address) as process:
        server.next("hello")
        assert [server.next("observations").step for _ in range(4)] == [0, 1, 2, 3]
        request = server.received.get(timeout=TIMEOUT_S)
        assert request.bye.reason == pb.Bye.REASON_SHUTDOWN
        assert process.wait(TIMEOUT_S) == ExitCode.OK


def test_sigint_ends_a_process_that_waits_for_actions() -> None:
    with learner() as server:
        server.answer = lambda hello, observations: None
        with running("--env", "Mock", "--address", server.address) as process:
            server.next("observations")
            process.send_signal(signal.SIGINT)
            assert server.next("bye").reason == pb.Bye.REASON_SHUTDOWN
            assert process.wait(TIMEOUT_S) in (130, -signal.SIGINT)  # dies of it on a terminal


def test_sighup_drains_as_sigterm_does() -> None:
    with learner() as server, running("--env", "Mock", "--address", server.address) as process:
        server.next("observations")
        process.send_signal(signal.SIGHUP)
        assert server.next("bye").reason == pb.Bye.REASON_SHUTDOWN
        assert process.wait(TIMEOUT_S) == ExitCode.OK


def test_an_environment_that_closes_what_is_not_its_own_keeps_no_core_busy() -> None:
    flags = ("--env", f"{MODULE}:ClosesEverything-v0", "--envs-per-stream=1", "--env-timeout-s=2")
    with learner() as server, running(*flags, "--address", server.address) as process:
        server.next("hello")
        supervisor = psutil.Process(process.pid)
        wait_for_log(process, "computed for more than")
        used = supervisor.cpu_times()
        assert used.user + used.system < 1.5


def test_sigterm_ends_a_process_that_waits_for_a_learner() -> None:
    with learner() as server:
        address = server.address
    with running("--env", "Mock", "--address", address) as process:
        line = wait_for_log(process, "waiting for the learner")
        assert json.loads(line)["level"] == "info"
        process.send_signal(signal.SIGTERM)
        assert process.wait(TIMEOUT_S) == ExitCode.OK


@pytest.mark.parametrize(("env", "moment"), [("HangsInReset", "joined run"), ("HangsAndMissesSigterm", "reset began")])
def test_sigterm_ends_a_process_whose_environment_hangs(env: str, moment: str) -> None:
    with (
        learner() as server,
        running("--env", f"{MODULE}:{env}-v0", "--address", server.address) as process,
    ):
        wait_for_log(process, moment)
        process.send_signal(signal.SIGTERM)
        assert server.next("bye").reason == pb.Bye.REASON_SHUTDOWN
        assert process.wait(TIMEOUT_S) == ExitCode.OK


def test_a_refusal_is_reported_in_the_exit_status() -> None:
    refusal = (grpc.StatusCode.FAILED_PRECONDITION, "protocol_version 9")
    with learner(refuse=refusal) as server, running("--env", "Mock", "--address", server.address) as process:
        wait_for_log(process, "protocol_version 9")
        assert process.wait(TIMEOUT_S) == ExitCode.REFUSED


def test_a_wrong_flag_is_reported_in_the_exit_status() -> None:
    with running("--env", "Mock", "--num_streams", "0") as process:
        assert "num_streams = 0" in wait_for_log(process, "kubebeast-envserver:")
        assert process.wait(TIMEOUT_S) == ExitCode.USAGE


def test_a_misspelt_variable_is_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBEBEAST_ENV_TIMEOUT", "5")
    with running("--env=Mock", f"--address={free_address()}") as process:
        line = json.loads(wait_for_log(process, "KUBEBEAST_ENV_TIMEOUT is set"))
        assert line["level"] == "warning" and "did you mean KUBEBEAST_ENV_TIMEOUT_S?" in line["message"]


def test_a_reader_of_its_help_that_goes_away_is_no_error() -> None:
    command = [sys.executable, "-m", "kubebeast_envserver", "--help"]
    buffered = {**os.environ, "PYTHONUNBUFFERED": ""}  # else argparse itself gets the error, and ignores it
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=buffered) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 128 + signal.SIGPIPE


def test_the_module_of_an_environment_is_found_in_the_working_directory(tmp_path: Path) -> None:
    (tmp_path / "beside_me.py").write_text("from kubebeast_envserver import catch")
    program = "import sys; from kubebeast_envserver.__main__ import main; sys.exit(main())"
    with learner() as server:
        command = [sys.executable, "-P", "-c", program, "--env=beside_me:Catch-v0", f"--address={server.address}"]
        with subprocess.Popen(command, cwd=tmp_path) as process:
            assert server.next("hello").env_id == "beside_me:Catch-v0"
            process.terminate()


def test_a_process_ends_by_the_hooks_of_its_environments_and_takes_no_interpreter_down(tmp_path: Path) -> None:
    (tmp_path / "tidy_game.py").write_text(TIDY_GAME)
    program = "import sys; from kubebeast_envserver.__main__ import main; sys.exit(main())"
    with learner() as server:
        command = [sys.executable, "-c", program, "--env=tidy_game:Catch-v0", f"--address={server.address}"]
        with subprocess.Popen(command, cwd=tmp_path) as process:
            server.next("observations")
            process.terminate()
    assert process.returncode == ExitCode.OK
    assert (tmp_path / "hook").exists() and not (tmp_path / "finalized").exists()


def test_an_unknown_environment_is_reported_in_the_exit_status() -> None:
    with running("--env", "PnogNoFrameskip-v4") as process:
        assert "Pong" in wait_for_log(process, "PnogNoFrameskip-v4")
        assert process.wait(TIMEOUT_S) == ExitCode.USAGE


def test_streams_are_processes_that_end_together() -> None:
    with learner() as server, running("--env", "Mock", "--address", server.address, "--num-streams", "2") as process:
        hellos = [server.next("hello") for _ in range(2)]
        assert len({hello.instance_id for hello in hellos}) == 2
        process.send_signal(signal.SIGTERM)
        assert [server.next("bye").reason for _ in range(2)] == [pb.Bye.REASON_SHUTDOWN] * 2
        assert process.wait(TIMEOUT_S) == ExitCode.OK


def test_a_killed_stream_process_is_replaced() -> None:
    with learner() as server, running("--env", "Mock", "--address", server.address, "--num-streams", "2") as process:
        instances = {server.next("hello").instance_id for _ in range(2)}
        children(process.pid, SPAWNED)[0].kill()
        assert server.next("hello").instance_id not in instances
        process.send_signal(signal.SIGTERM)
        assert process.wait(TIMEOUT_S) == ExitCode.OK


def test_stream_processes_end_with_a_killed_supervisor() -> None:
    with learner() as server, running("--env", "Mock", "--address", server.address, "--num-streams", "2") as process:
        for _ in range(2):
            server.next("hello")
        process.kill()
        assert [server.next("bye").reason for _ in range(2)] == [pb.Bye.REASON_SHUTDOWN] * 2


def test_one_refused_stream_ends_the_env_server() -> None:
    refusal = (grpc.StatusCode.FAILED_PRECONDITION, "wrong shape")
    with (
        learner(refuse=refusal) as server,
        running("--env", "Mock", "--address", server.address, "--num-streams", "2") as process,
    ):
        assert process.wait(TIMEOUT_S) == ExitCode.REFUSED


def test_an_env_server_needs_neither_torch_nor_the_native_core() -> None:
    program = """
import sys, kubebeast_envserver.__main__
from kubebeast_envserver.envs.factory import make_vector_env
make_vector_env("CartPole-v1", 1).reset()
print(*[name for name in ("torch", "kubebeast_native", "kubebeast_learner", "setuptools") if name in sys.modules])
"""
    result = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert result.stdout.strip() == ""
