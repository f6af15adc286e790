"""Other trainers than KubeBeast's, from the examples, and the env-servers of CartPole that dial them."""

import os
import re
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Generator
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
LINE = re.compile(r"step (\d+)  (\d+) steps/s  mean return (\S+)  lost (\d+)")


class EnvServers:
    """Env-servers in separate process groups, which can be killed as if their machine had failed."""

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


def lines_of(
    script: str, address: str, *, total_steps: int, num_envs: int, seed: int = 1
) -> Generator[tuple[int, float, int]]:
    """Runs a trainer and yields step, mean return and environments lost so far, for each rollout.

    Closing the generator ends the trainer.

    Args:
        script: File name in examples/.
        num_envs: Number of environments that train.

    Raises:
        RuntimeError: If the trainer fails.
    """
    flags = [f"--address={address}", f"--total-steps={total_steps}", f"--num-envs={num_envs}"]
    command = [sys.executable, str(EXAMPLES / script), *flags, f"--seed={seed}"]
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
