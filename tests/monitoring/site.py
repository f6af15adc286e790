"""A learner beside simulated GPUs, env-servers that come, go and misbehave, each in its own process, and a Prometheus
that reads them.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Self

from harness.ports import free_port
from harness.processes.env_server import ROOT
from harness.processes.learner_process import LearnerProcess
from tests.device.cuda_hooks import LIBRARY, compile_hooks
from tests.monitoring.prometheus import Prometheus

NUM_STREAMS = 2
"""Streams of an env-server."""
NUM_ENVS = 2
"""Environments of a stream."""
STEP_MS = 22.0
"""Duration of an environment's step in a healthy env-server."""
GROUP = "paced"
NUM_GPUS = 2
"""Simulated GPUs of the learner's machine, half full and at work for half of the time. It computes on the CPU."""
WAIT_S = 300.0
START_S = 300.0
"""Time for a learner to import torch and for env-servers to join it, on a busy machine."""
KNOWN_S = 25
"""Seconds of history that give every window of the rules and panels data."""

# 80 steps per update of 0.35 s and more, in which time three healthy env-servers would make 95. Alerts of a waiting
# learner or fleet need a much larger ratio: on a busy machine the learner's updates wait for a fleet that has become
# slow. The queue has places for five of their six streams, so that one is parked at any time.
LEARNER_FLAGS = (
    "--model=tests.monitoring.paced_model:PacedModel",
    "--unroll-length=20",
    "--batch-size=4",
    "--max-learner-queue-size=10",
    "--compile=off",
    "--device=cpu",
    "--log-interval-s=0.5",
    "--log-info=caught",
    "--checkpoint-interval-minutes=0.05",
)


class Site:
    """A context manager: entering starts learner and Prometheus, leaving ends them and the env-servers."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._targets = folder / "targets.json"
        self._addresses: dict[str, str] = {}
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as stack:
            self.learner = stack.enter_context(self._make_learner())
            self._tell_targets()
            monitor = Prometheus(self._folder, learner=self.learner.http_address, targets=self._targets)
            self.prometheus = stack.enter_context(monitor)
            stack.callback(self._kill_all)
            self.learner.wait_listening()
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def start(self, *names: str, step_ms: float = STEP_MS) -> None:
        """Starts env-servers under new names, which Prometheus finds as it finds pods; returns before they have
        joined.
        """
        for name in names:
            self._addresses[name] = f"127.0.0.1:{free_port()}"
            command = [
                *(sys.executable, "-m", "kubebeast_envserver"),
                "--env=tests.e2e.environments:Paced-v0",
                f"--env-kwargs={json.dumps({'step_ms': step_ms})}",
                f"--address={self.learner.address}",
                f"--http-address={self._addresses[name]}",
                f"--num-streams={NUM_STREAMS}",
                f"--envs-per-stream={NUM_ENVS}",
                f"--env-server-id={name}",
            ]
            with (self._folder / f"{name}.log").open("wb") as log:
                self._processes[name] = subprocess.Popen(
                    command, cwd=ROOT, stderr=log, env={**os.environ, "OMP_NUM_THREADS": "1"}, process_group=0
                )
        self._tell_targets()

    def wait_until_known(self) -> None:
        """Returns once Prometheus has read the learner and every env-server for KNOWN_S."""

        def look() -> bool | None:
            known = self.prometheus.query(f"sum_over_time(up[5m]) >= {KNOWN_S}")
            return True if len(known) == 1 + len(self._processes) else None

        self.prometheus.eventually(START_S + KNOWN_S, look, "the learner and every env-server are read")

    def kill(self, name: str) -> None:
        """Sends SIGKILL to the env-server and its children; it remains a target of Prometheus."""
        process = self._processes.pop(name)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(WAIT_S)

    def restart_learner(self) -> None:
        """Kills the learner, as if it were out of memory, and starts another; blocks until Prometheus reads it."""
        starts = "max(kubebeast_learner_start_time_seconds)"
        (before,) = self.prometheus.query(starts)
        self.learner.kill()
        self.learner.start()
        self.prometheus.eventually(
            START_S, lambda: self.prometheus.query(f"{starts} > {before.value!r}") or None, "the next learner is read"
        )

    @contextlib.contextmanager
    def hanging(self) -> Iterator[None]:
        """Stops all env-servers and their children, once the learner trains; they continue afterwards."""
        steps = "delta(kubebeast_learner_step[5s]) > 0"
        self.prometheus.eventually(START_S, lambda: self.prometheus.query(steps) or None, "the learner trains")
        for process in self._processes.values():
            os.killpg(process.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for process in self._processes.values():
                os.killpg(process.pid, signal.SIGCONT)

    def dismiss(self, name: str) -> None:
        """Sends SIGTERM, as when a pod is scaled away: it leaves with a goodbye, and is no target of Prometheus any
        more.
        """
        process = self._processes.pop(name)
        process.terminate()
        process.wait(WAIT_S)
        del self._addresses[name]
        self._tell_targets()

    def _make_learner(self) -> LearnerProcess:
        simulation = {LIBRARY: str(compile_hooks(self._folder)), "SIMULATED_GPUS": str(NUM_GPUS)}
        simulation["SIMULATION_FINDINGS"] = str(self._folder)
        return LearnerProcess(self._folder, *LEARNER_FLAGS, variables=simulation, module="tests.device.simulation")

    def _kill_all(self) -> None:
        for name in [*self._processes]:
            self.kill(name)

    def _tell_targets(self) -> None:
        groups = [
            {"targets": [address], "labels": {"pod": name, "kubebeast_group": GROUP}}
            for name, address in self._addresses.items()
        ]
        whole = self._targets.with_suffix(".new")
        whole.write_text(json.dumps(groups))
        whole.replace(self._targets)
