"""Trainers that are not KubeBeast's learn CartPole while their env-servers are killed and replaced:

    python -m benchmarks.fleet_trainers --total-steps 100000

Each of examples/fleet_ppo.py and examples/fleet_sb3.py trains on env-servers of one environment each. After every
`lines_between_kills` rollouts the oldest env-server gets SIGKILL, with all of its processes, and a new one starts. The
second trainer needs stable-baselines3, which is no requirement of KubeBeast's; without it the reason is in its place.
"""

import dataclasses
import importlib.util
import os
import re
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Generator
from pathlib import Path

import tyro

from benchmarks import report
from tests.ports import free_address

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
TRAINERS = {"CleanRL's manner": "fleet_ppo.py", "Stable-Baselines3": "fleet_sb3.py"}
LINE = re.compile(r"step (\d+)  (\d+) steps/s  mean return (\S+)  lost (\d+)")


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    total_steps: int = 100_000
    """For each trainer."""
    num_envs: int = 8
    """Environments that train; there is one env-server more than these need."""
    lines_between_kills: int = 20
    """Rollouts of 32 steps in every environment."""
    seed: int = 1
    """Of the trainers."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    trainer: str
    steps: int = 0
    seconds: float = 0.0
    env_servers_killed: int = 0
    environments_lost: int = 0
    return_at_half: float = 0.0
    """Mean of the newest 100 episodes when half of the steps were done."""
    return_at_end: float = 0.0
    not_run: str = ""


class EnvServers:
    """Processes in groups of their own, which can be killed as a machine that goes would."""

    def __init__(self, address: str) -> None:
        self._flags = ["--env=CartPole-v1", f"--address={address}", "--envs-per-stream=1", "--log-level=error"]
        self._running: deque[subprocess.Popen[bytes]] = deque()

    def start(self) -> None:
        command = [sys.executable, "-m", "kubebeast_envserver", *self._flags]
        self._running.append(subprocess.Popen(command, start_new_session=True))

    def kill_oldest(self) -> None:
        process = self._running.popleft()
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def kill_all(self) -> None:
        while self._running:
            self.kill_oldest()


def lines_of(script: str, address: str, settings: Settings) -> Generator[tuple[int, float, int]]:
    """Step, mean return and environments lost so far, for each rollout. RuntimeError when the trainer fails.

    Closing it ends the trainer.
    """
    flags = [f"--address={address}", f"--total-steps={settings.total_steps}", f"--num-envs={settings.num_envs}"]
    command = [sys.executable, str(EXAMPLES / script), *flags, f"--seed={settings.seed}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            for line in process.stdout:
                if found := LINE.match(line):
                    yield int(found[1]), float(found[3]), int(found[4])
        except GeneratorExit:
            process.terminate()
            raise
    if process.returncode:
        raise RuntimeError(f"{script} ended with {process.returncode}")


def train(name: str, script: str, settings: Settings) -> Row:
    address = free_address()
    servers, begin, num_killed, half = EnvServers(address), time.monotonic(), 0, 0.0
    step, mean, lost = 0, 0.0, 0
    try:
        for _ in range(settings.num_envs + 1):
            servers.start()
        for number, rollout in enumerate(lines_of(script, address, settings), start=1):
            step, mean, lost = rollout
            half = mean if step <= settings.total_steps / 2 else half
            if number % settings.lines_between_kills == 0:
                servers.kill_oldest()
                servers.start()
                num_killed += 1
    finally:
        servers.kill_all()
    return Row(
        trainer=name,
        steps=step,
        seconds=time.monotonic() - begin,
        env_servers_killed=num_killed,
        environments_lost=lost,
        return_at_half=half,
        return_at_end=mean,
    )


def main() -> None:
    settings = tyro.cli(Settings, description=__doc__)
    rows = []
    for name, script in TRAINERS.items():
        if script == "fleet_sb3.py" and importlib.util.find_spec("stable_baselines3") is None:
            rows.append(Row(trainer=name, not_run="stable-baselines3 is not installed"))
        else:
            rows.append(train(name, script, settings))
    report.print_table("CartPole on a fleet that is killed and replaced", rows)
    print("Results:", report.write_json("fleet_trainers", settings, {"rows": rows}))


if __name__ == "__main__":
    main()
