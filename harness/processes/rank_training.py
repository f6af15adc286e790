"""Learners under torchrun and their env-servers, all in separate processes."""

import contextlib
import json
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Self

import psutil

from harness.ports import free_ports
from harness.processes.training_process import TIMEOUT_S, environment

FLAGS = ["--xpid=run", "--recipe=torchbeast", "--model=mlp", "--unroll-length=10", "--batch-size=4", "--compile=off"]
FLAGS += ["--progress=json", "--log-interval-s=0.2", "--checkpoint-interval-minutes=0.02", "--share-timeout-s=1"]


class Ranks:
    """`torchrun kubebeast learner` with num_ranks ranks; reads the progress of the first rank and the logs of all."""

    def __init__(
        self,
        savedir: Path,
        num_ranks: int,
        *flags: str,
        port: int | None = None,
        module: str = "kubebeast_learner",
        rendezvous: Sequence[str] = ("--rdzv-endpoint=localhost:0",),
    ) -> None:
        """Starts torchrun.

        Args:
            num_ranks: Number of ranks of this torchrun.
            port: Port of the first rank; None for free ports.
            module: Module that Python runs, the learner's package by default.
            rendezvous: Flags of torchrun for the rendezvous with others.
        """
        self._module = module
        self.port = port or free_ports(num_ranks)
        torchrun = [sys.executable, "-m", "torch.distributed.run", "--max-restarts=20", "--rdzv-backend=c10d"]
        self.process = subprocess.Popen(
            [
                *torchrun,
                *rendezvous,
                f"--nproc-per-node={num_ranks}",
                *("-m", module, "learner", f"--savedir={savedir}", *FLAGS),
                f"--address=127.0.0.1:{self.port}",
                *flags,
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=environment(TORCH_DISABLE_SHARE_RDZV_TCP_STORE="1"),
        )
        self.lines: list[dict[str, Any]] = []
        self._news = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        """Kills torchrun and all ranks."""
        for process in [*self.workers(), psutil.Process(self.process.pid)] if self.process.poll() is None else []:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        self.process.wait()
        self._reader.join(TIMEOUT_S)

    def workers(self) -> list[psutil.Process]:
        """Returns the processes of the running ranks, in order of rank."""
        found: dict[str, psutil.Process] = {}
        for child in psutil.Process(self.process.pid).children():
            with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
                if self._module in child.cmdline():
                    found[child.environ()["RANK"]] = child
        return [found[rank] for rank in sorted(found)]

    def wait_for(self, condition: Callable[[dict[str, Any]], bool], since: int = 0) -> int:
        """Waits for a line that meets the condition; returns the index of the first from `since` on, plus one."""
        deadline = time.monotonic() + TIMEOUT_S
        with self._news:
            while True:
                for index in range(since, len(self.lines)):
                    if condition(self.lines[index]):
                        return index + 1
                since = len(self.lines)
                ended = not self._reader.is_alive()
                assert not ended and self._news.wait(deadline - time.monotonic()), self.text()

    def wait_for_step(self, step: int, since: int = 0) -> int:
        return self.wait_for(lambda line: line["message"] == "progress" and line["step"] >= step, since)

    def wait_for_share(self, rank: int) -> int:
        """Waits until a rank trains on batches of its own: on a busy machine its env-server may join after a minute."""
        return self.wait_for(lambda line: line["message"] == "progress" and bool(line.get(f"sps/rank{rank}")))

    def wait_for_message(self, pattern: str, since: int = 0) -> int:
        return self.wait_for(lambda line: re.search(pattern, line["message"]) is not None, since)

    def terminate(self) -> None:
        """Sends SIGTERM to torchrun, which ends all ranks, and blocks until it has ended."""
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(TIMEOUT_S)
        self._reader.join(TIMEOUT_S)

    def text(self) -> str:
        return "\n".join(
            f"{line.get('rank', '?')}: {line['message']} {line.get('traceback', '')}" for line in self.lines
        )

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as output:
            for text in output:
                line = {"message": text.rstrip()}
                with contextlib.suppress(ValueError):
                    line = json.loads(text)
                with self._news:
                    self.lines.append(line)
                    self._news.notify_all()
        with self._news:
            self._news.notify_all()


class EnvServer:
    """An env-server of CartPole that dials `ports`, "first-last" or a single one, until the context ends."""

    def __init__(self, ports: int | str, *flags: str) -> None:
        words = ["kubebeast_envserver", "--env=CartPole-v1", "--num-streams=1", "--envs-per-stream=2", *flags]
        self.process = subprocess.Popen(
            [sys.executable, "-m", *words, f"--address=127.0.0.1:{ports}", "--http-address="],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=environment(),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.process.terminate()
        self.process.wait(TIMEOUT_S)
