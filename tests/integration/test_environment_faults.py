"""Environments that fail together, or processes that die, end their own stream only; probes and counters go on."""

import json
import signal
import subprocess
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import psutil

from harness.ports import free_address
from kubebeast_envserver.process.worker import ExitCode
from kubebeast_protos.v1 import actor_pool_pb2 as pb
from tests.child_processes import SPAWNED, children
from tests.integration.envserver_faults import BREAKS_AT, WELL
from tests.integration.envserver_learner import TIMEOUT_S, StreamThread, learner, running, wait_for_log
from tests.integration.playing_pool import WELL_SPEC, PlayingPool

MODULE = "tests.integration.envserver_faults"


def test_a_learner_without_the_word_for_it_gets_the_whole_stream_anew() -> None:
    breaks_once = {"script": iter([WELL] * 10 + ["nan"])}  # environment 2 of 4 in its first step
    options = {"env": f"{MODULE}:FollowsScript-v0", "env_kwargs": breaks_once, "envs_per_stream": 4}
    with learner(minor=0) as server, StreamThread(address=server.address, **options):
        server.next("hello")
        bye = server.next("bye")
        assert (bye.reason, "environment 2 failed" in bye.detail) == (pb.Bye.REASON_UNSPECIFIED, True)
        server.next("hello")
        for step in range(2 * BREAKS_AT):
            assert server.next("observations").step == step


def killed_process(pool: PlayingPool, spared: Path, *flags: str) -> Any:
    kwargs = json.dumps({"spared": str(spared)})
    return running(
        f"--env={MODULE}:AllButOneAreKilled-v0",
        f"--env-kwargs={kwargs}",
        f"--address={pool.address}",
        "--envs-per-stream=1",
        *flags,
    )


def test_a_stream_that_keeps_dying_is_given_up_and_the_other_plays_on(tmp_path: Path) -> None:
    options = ["--num-streams=2", "--max-failures=2", "--http-address=127.0.0.1:0"]
    with (
        PlayingPool(WELL_SPEC) as pool,
        killed_process(pool, tmp_path / "spared", *options) as process,
    ):
        port = serving_port(process)
        pool.play_until(lambda: metrics(port)["kubebeast_envserver_streams_quarantined"] == 1)
        assert get(port, "/healthz") == (200, "ok\n")
        assert get(port, "/readyz") == (200, "ok\n")
        process.send_signal(signal.SIGTERM)
        assert ends_with(pool, process) == ExitCode.OK


def test_a_process_that_does_not_end_by_itself_is_given_up_all_the_same() -> None:
    flags = [f"--env={MODULE}:OutlivesItsEnd-v0", "--max-failures=1"]
    with learner() as server, running(*flags, f"--address={server.address}") as process:
        assert process.wait(TIMEOUT_S) == ExitCode.USAGE


def test_sigterm_ends_an_env_server_that_waits_to_replace_a_process(tmp_path: Path) -> None:
    (tmp_path / "spared").touch()
    with (
        PlayingPool(WELL_SPEC) as pool,
        killed_process(pool, tmp_path / "spared") as process,
    ):
        pool.wait_for_event("left")
        wait_for_log(process, "is replaced in")
        process.send_signal(signal.SIGTERM)
        assert ends_with(pool, process) == ExitCode.OK


def test_sigterm_ends_an_env_server_whose_environments_are_all_broken() -> None:
    flags = [f"--env={MODULE}:RaisesInStep-v0", "--max-failures=100"]
    with PlayingPool(WELL_SPEC) as pool, running(*flags, f"--address={pool.address}") as process:
        pool.play_until(lambda: pool.stat("env_interruptions") > 0)
        process.send_signal(signal.SIGTERM)
        assert ends_with(pool, process) == ExitCode.OK
        assert pool.wait_for_event("left").reason == "bye"


def test_sigterm_ends_a_stream_process_that_is_stopped() -> None:
    with PlayingPool() as pool, running("--env", "Mock", "--address", pool.address) as process:
        pool.play_until(lambda: pool.stat("rows_received") > 0)
        child = stream_process(process.pid)
        child.suspend()
        process.send_signal(signal.SIGTERM)
        assert process.wait(TIMEOUT_S) == ExitCode.OK
        assert not child.is_running()


def test_probes_follow_the_connection() -> None:
    address = free_address()
    flags = [f"--env={MODULE}:Well-v0", "--envs-per-stream=2", f"--address={address}"]
    with running(*flags, "--http-address=127.0.0.1:0") as process:
        http = serving_port(process)
        assert get(http, "/healthz") == (200, "ok\n")
        assert get(http, "/readyz") == (503, f"no stream is connected: waiting for the learner at {address}\n")
        assert get(http, "/elsewhere")[0] == 404
        with PlayingPool(WELL_SPEC, address=address) as pool:
            pool.play_until(lambda: pool.stat("rows_received") > 0)
            assert get(http, "/readyz") == (200, "ok\n")
        wait_for_log(process, "lost the learner")
        assert get(http, "/readyz")[0] == 503
        assert metrics(http)['kubebeast_envserver_connects_total{outcome="lost"}'] == 1


def test_counters_outlive_the_process_that_counted() -> None:
    flags = [f"--env={MODULE}:RewardIsNotFinite-v0", "--envs-per-stream=2", "--max-failures=100"]
    with (
        PlayingPool(WELL_SPEC) as pool,
        running(*flags, f"--address={pool.address}", "--http-address=127.0.0.1:0") as process,
    ):
        port = serving_port(process)
        pool.play_until(lambda: metrics(port)["kubebeast_envserver_env_restarts_total"] >= 2)
        before = metrics(port)
        assert before['kubebeast_envserver_env_failures_total{kind="reward"}'] >= 2
        assert before['kubebeast_envserver_connects_total{outcome="welcomed"}'] == 1
        assert before["kubebeast_envserver_stream_restarts_total"] == 0
        stream_process(process.pid).kill()
        pool.play_until(lambda: metrics(port)['kubebeast_envserver_connects_total{outcome="welcomed"}'] == 2)
        after = metrics(port)
        assert all(after[name] >= value for name, value in before.items() if "_total" in name)
        assert after['kubebeast_envserver_env_failures_total{kind="process"}'] == 1
        assert after["kubebeast_envserver_stream_restarts_total"] == 1
        assert after["kubebeast_envserver_streams_connected"] == 1


def test_an_http_address_that_is_taken_is_reported_in_the_exit_status() -> None:
    with PlayingPool() as pool, running("--env", "Mock", "--http-address", pool.address) as process:
        assert pool.address in wait_for_log(process, "http_address")
        assert process.wait(TIMEOUT_S) == ExitCode.USAGE


def ends_with(pool: PlayingPool, process: "subprocess.Popen[str]") -> int:
    """Plays until the process has ended; returns its exit status."""
    pool.play_until(lambda: process.poll() is not None)
    return process.returncode


def stream_process(supervisor: int) -> psutil.Process:
    return children(supervisor, SPAWNED)[0]


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
    """Returns samples by name and labels, as they are written."""
    lines = [line for line in get(port, "/metrics")[1].splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}
