"""`kubebeast learner` serves Kubernetes and Prometheus: probes, metrics, SIGTERM; in both directions."""

import contextlib
import json
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from harness.ports import free_port
from harness.processes.training_process import TIMEOUT_S, checkpoint_steps, command, environment, was_successful

FLAGS = ["--xpid=run", "--address=127.0.0.1:0", "--http-address=127.0.0.1:0", "--total-steps=1000000000"]
FLAGS += ["--unroll-length=10", "--batch-size=4", "--model=mlp", "--compile=off", "--progress=json"]
FLAGS += ["--log-format=text"]
REFUSED, UNREACHABLE = 3, 4
ENV_SERVER = [sys.executable, "-m", "kubebeast_envserver", "--env=CartPole-v1", "--num-streams=1"]


class Learner:
    """A process of `kubebeast learner`, with its log and progress as one stream of lines."""

    def __init__(self, savedir: Path, *flags: str) -> None:
        self.process = subprocess.Popen(
            command("learner", f"--savedir={savedir}", *FLAGS, "--log-interval-s=0.2", *flags),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=environment(),
        )
        self.lines: list[str] = []
        self.http_port = self.wait_for(r"serving HTTP on port (\d+)")

    @property
    def address(self) -> str:
        """Its listening address."""
        return next(line.split()[-1] for line in self.lines if "listening on" in line)

    def wait_for(self, pattern: str) -> str:
        """Returns the first group of the next line with the pattern."""
        for line in self._output():
            if match := re.search(pattern, line):
                return match[1]
        raise AssertionError(f"the learner ended without {pattern}:\n{''.join(self.lines)}")

    def wait_for_snapshot(self, **minimum: float) -> dict[str, Any]:
        """Returns the next progress line with values that are at least these."""
        for line in self._output():
            if line.startswith("{"):
                values: dict[str, Any] = json.loads(line)
                if all(values[name] >= least for name, least in minimum.items()):
                    return values
        raise AssertionError(f"the learner ended without {minimum}:\n{''.join(self.lines)}")

    def terminate(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        self.lines += self.process.communicate(timeout=TIMEOUT_S)[0].splitlines(keepends=True)
        return self.process.returncode

    def ask(self, path: str) -> tuple[int, str]:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.http_port}{path}", timeout=TIMEOUT_S) as response:
                return response.status, response.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def metrics(self) -> dict[str, float]:
        """Returns samples by name and label value."""
        return {
            "/".join([sample.name, *sample.labels.values()]): sample.value
            for family in text_string_to_metric_families(self.ask("/metrics")[1])
            for sample in family.samples
        }

    def _output(self) -> Iterator[str]:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line)
            yield line


@contextlib.contextmanager
def learner(savedir: Path, *flags: str) -> Iterator[Learner]:
    running = Learner(savedir, *flags)
    try:
        yield running
    finally:
        running.process.kill()
        running.process.wait()
        assert running.process.stdout is not None
        running.process.stdout.close()


@contextlib.contextmanager
def env_server(*flags: str) -> Iterator[None]:
    process = subprocess.Popen([*ENV_SERVER, *flags], env=environment())
    try:
        yield
    finally:
        process.terminate()
        process.wait(TIMEOUT_S)


def test_a_learner_is_alive_and_ready_before_anybody_came_and_ends_well_when_told_to(tmp_path: Path) -> None:
    with learner(tmp_path) as running:
        assert running.ask("/healthz") == (200, "ok\n")
        assert running.ask("/readyz") == (200, "ok\n")
        assert running.ask("/elsewhere")[0] == 404
        assert running.metrics()["kubebeast_streams"] == 0
        assert running.terminate() == 0
    assert not (tmp_path / "run").exists(), "a run that never began leaves no folder"


def test_a_training_is_told_of_and_saved_when_told_to_end(tmp_path: Path) -> None:
    with learner(tmp_path) as running, env_server(f"--address={running.address}", "--envs-per-stream=4"):
        snapshot = running.wait_for_snapshot(step=200, streams=1, steps_in_flight=1)
        assert snapshot["steps_dropped_stale"] == snapshot["env_failures"] == 0
        metrics = running.metrics()
        assert metrics["kubebeast_learner_step"] >= 200
        assert (metrics["kubebeast_streams"], metrics["kubebeast_envs"]) == (1, 4)
        outcomes = ("delivered", "dropped_partial", "dropped_stale", "dropped_close")
        told = sum(metrics[f"kubebeast_steps_total/{outcome}"] for outcome in outcomes)
        assert metrics["kubebeast_steps_total/sampled"] == told + metrics["kubebeast_steps_in_flight"] > 0
        assert running.ask("/healthz") == (200, "ok\n")
        assert running.terminate() == 0
    log = "".join(running.lines)
    assert re.search(r" joined from ipv4:127\.0\.0\.1:\d+: 4 of CartPole-v1$", log, flags=re.MULTILINE)
    (step,) = checkpoint_steps(tmp_path / "run")
    assert step >= snapshot["step"]
    assert was_successful(tmp_path / "run")


def test_a_learner_that_resumes_lets_its_own_environment_in_and_no_other(tmp_path: Path) -> None:
    with learner(tmp_path) as running, env_server(f"--address={running.address}", "--envs-per-stream=4"):
        running.wait_for_snapshot(step=40)
        assert running.terminate() == 0
    (step,) = checkpoint_steps(tmp_path / "run")
    with learner(tmp_path) as running:
        other = [*ENV_SERVER, "--env=Acrobot-v1", f"--address={running.address}", "--envs-per-stream=1"]
        assert subprocess.run(other, env=environment(), timeout=TIMEOUT_S).returncode == REFUSED
        with env_server(f"--address={running.address}", "--envs-per-stream=4"):
            running.wait_for_snapshot(step=step + 40)
            assert running.terminate() == 0
    assert re.search(r" refused: \w+: .*\[4\]", "".join(running.lines))


def test_a_learner_dials_env_servers_that_listen(tmp_path: Path) -> None:
    port = free_port()
    with (
        learner(tmp_path, f"--dial=localhost:{port}-{port}", "--address=127.0.0.1:4431") as running,
        env_server(f"--listen=127.0.0.1:{port}", "--envs-per-stream=4"),
    ):
        assert running.wait_for_snapshot(step=200)["streams"] == 1
        assert running.terminate() == 0
    log = "".join(running.lines)
    assert f"dialing localhost:{port}-{port}" in log
    assert "listening on" not in log


def test_a_finished_learner_that_lingers_stays_healthy_and_turns_env_servers_away(tmp_path: Path) -> None:
    flags = ("--linger", "--total-steps=200")
    with learner(tmp_path, *flags) as running, env_server(f"--address={running.address}", "--envs-per-stream=4"):
        running.wait_for("(trained to the end)")
        assert running.ask("/healthz") == running.ask("/readyz") == (200, "ok\n")
        assert running.terminate() == 0
    (step,) = checkpoint_steps(tmp_path / "run")
    assert step >= 200
    with learner(tmp_path, *flags) as running:
        running.wait_for("(trained to the end)")
        late = [*ENV_SERVER, f"--address={running.address}", "--envs-per-stream=1", "--max-redials=1"]
        assert subprocess.run(late, env=environment(), timeout=TIMEOUT_S).returncode == UNREACHABLE
        assert running.ask("/healthz") == running.ask("/readyz") == (200, "ok\n")
        assert running.terminate() == 0
    assert checkpoint_steps(tmp_path / "run") == [step]
    with learner(tmp_path, *flags, "--linger-s=0.5", "--stop-status=143") as running:
        running.wait_for("(trained to the end)")
        assert running.process.wait(TIMEOUT_S) == 0, "it ends by itself"
    with learner(tmp_path, *flags, "--stop-status=143") as running:
        running.wait_for("(trained to the end)")
        assert running.terminate() == 0, "no signal stops what has ended"
