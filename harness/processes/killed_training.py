"""A training that is killed at random moments and resumed repeatedly, and the cost of each kill."""

import contextlib
import dataclasses
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

INTERVAL_S = 0.6
"""Interval of checkpoints."""
WAIT_S = 300.0


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Kill:
    number: int
    announced_step: int
    """Step of the newest checkpoint that the learner had announced before the kill."""
    last_step: int
    """Newest step that it had reported."""
    resumed_step: int
    """First step of the next life."""
    lost_steps: int
    """Reported steps that were trained again."""
    lost_s: float
    """Age of the resumed checkpoint at the kill, in seconds."""


class Life:
    """One process of the run, until it is killed."""

    def __init__(self, command: str, savedir: Path) -> None:
        self._folder = savedir / "run"
        self._last_step = 0
        words = [sys.executable, "-m", "kubebeast_learner", command, "--env=CartPole-v1", f"--savedir={savedir}"]
        settings = [
            "--recipe=CartPole-v1",
            "--xpid=run",
            "--total-steps=1000000000",
            f"--checkpoint-interval-minutes={INTERVAL_S / 60}",
            "--log-interval-s=0.05",
            "--progress=json",
        ]
        self._process = subprocess.Popen(
            [*words, *settings],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"},
        )
        self._log_size = (self._folder / "out.log").stat().st_size if (self._folder / "out.log").exists() else 0

    def train_past_a_checkpoint(self) -> None:
        """Blocks until this life has announced a checkpoint; raises RuntimeError with its errors if it ends before."""
        assert self._process.stdout is not None
        while not self.announced_steps():
            line = self._process.stdout.readline()
            if not line:
                raise RuntimeError(f"the training ended: {self._process.communicate()[1]}")
            self._note_step(line)

    def kill(self) -> tuple[float, int]:
        """Kills the learner and returns the time and the newest step that it had reported."""
        os.kill(self._process.pid, signal.SIGKILL)
        killed_at = time.time()
        output, _ = self._process.communicate(timeout=WAIT_S)
        for line in output.splitlines():
            self._note_step(line)
        return killed_at, self._last_step

    def announced_steps(self) -> list[int]:
        """Returns the steps of the checkpoints that this life has announced in out.log."""
        return [int(step) for step in re.findall(r"saved \S+checkpoint-(\d+)\.pt", self._log())]

    def resumed_step(self) -> int:
        """Returns the first step of this life; 0 for a new run."""
        found = re.search(r"resuming \S+ at step (\d+)", self._log())
        return int(found[1]) if found else 0

    def _note_step(self, line: str) -> None:
        """Stores the step of a progress line; the last one may be incomplete after a kill."""
        with contextlib.suppress(ValueError):
            self._last_step = int(json.loads(line)["step"])

    def _log(self) -> str:
        path = self._folder / "out.log"
        return path.read_bytes()[self._log_size :].decode() if path.exists() else ""


def kill_and_resume(command: str, kills: int, seed: int, savedir: Path) -> list[Kill]:
    """Kills a run `kills` times and resumes it after each; raises RuntimeError if a resumed learner fails."""
    moments = random.Random(seed)
    results: list[Kill] = []
    life = Life(command, savedir)
    life.train_past_a_checkpoint()
    for number in range(1, kills + 1):
        time.sleep(moments.uniform(0.0, 2 * INTERVAL_S))
        killed_at, last_step = life.kill()
        announced = life.announced_steps()[-1]
        saved_at = {path.name: path.stat().st_mtime for path in (savedir / "run").glob("checkpoint-*.pt")}
        life = Life(command, savedir)
        life.train_past_a_checkpoint()
        resumed = life.resumed_step()
        lost_s = killed_at - saved_at[f"checkpoint-{resumed:012d}.pt"]
        results.append(
            Kill(
                number=number,
                announced_step=announced,
                last_step=last_step,
                resumed_step=resumed,
                lost_steps=max(0, last_step - resumed),
                lost_s=lost_s,
            )
        )
    life.kill()
    return results
