"""Thousands of streams of env-servers from a few processes, which run the program in replay_fleet."""

import contextlib
import itertools
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import psutil
from numpy.typing import NDArray

from benchmarks import messages
from benchmarks.cell import Cell

SOURCE = Path(__file__).parent / "replay_fleet"
BUILD = SOURCE.parents[2] / "build" / "replay_fleet"


def build(folder: Path = BUILD) -> Path:
    """Builds the program and returns its path; the first build takes a minute."""
    for command in (
        ["cmake", "-G", "Ninja", "-S", str(SOURCE), "-B", str(folder)],
        ["cmake", "--build", str(folder), "-j", "2"],
    ):
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return folder / "replay_fleet"


def write_messages(cell: Cell, recording: Path, path: Path) -> None:
    """Writes the messages of each stream of the cell: its Hello, its opening step and the steps that it repeats."""
    with path.open("wb") as file:
        for message in (messages.hello(cell, 0), *messages.observation_bodies(cell, recording)):
            file.write(len(message).to_bytes(4, "little") + message)


class Fleet:
    """Running processes, each with its share of the streams. Methods raise RuntimeError if one has ended."""

    def __init__(self, processes: Sequence["subprocess.Popen[str]"]) -> None:
        self._processes = processes

    def count(self) -> tuple[int, int]:
        """Returns the numbers of welcome streams and of answered vector steps."""
        counts = [[int(word) for word in answer.split()] for answer in self._ask("count")]
        return sum(each[0] for each in counts), sum(each[1] for each in counts)

    def clear_latencies(self) -> None:
        for process in self._processes:
            self._tell(process, "clear")

    def latencies(self) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Returns the times from observations to actions, in seconds, ascending, and the frequency of each.

        Only steps that cannot have been held back by a full queue are included.
        """
        pairs = sorted(
            (float(us) * 1e-6, int(count))
            for answer in self._ask("latencies")
            for us, count in (word.split(":") for word in answer.split())
        )
        return np.array([each[0] for each in pairs]), np.array([each[1] for each in pairs], np.int64)

    def cpu_s(self) -> float:
        """Returns the user and system time of all processes."""
        times = [psutil.Process(process.pid).cpu_times() for process in self._processes]
        return float(sum(each.user + each.system for each in times))

    def _ask(self, question: str) -> list[str]:
        for process in self._processes:
            self._tell(process, question)
        answers = []
        for process in self._processes:
            assert process.stdout is not None
            answers.append(process.stdout.readline())
            if not answers[-1]:
                raise RuntimeError("a process of the fleet ended; its error is printed above")
        return answers

    def _tell(self, process: "subprocess.Popen[str]", line: str) -> None:
        assert process.stdin is not None
        try:
            process.stdin.write(line + "\n")
            process.stdin.flush()
        except BrokenPipeError:
            raise RuntimeError("a process of the fleet ended; its error is printed above") from None


@contextlib.contextmanager
def running(
    program: Path, address: str, messages_file: Path, *, num_streams: int, num_processes: int, env_s: float, unroll: int
) -> Iterator[Fleet]:
    """Runs the processes of a fleet, and kills them at the end.

    Args:
        env_s: Mean time of an environment's step.
        unroll: Length of the learner's unrolls.
    """
    bounds = [num_streams * i // num_processes for i in range(num_processes + 1)]
    processes = [
        subprocess.Popen(
            [program, address, messages_file, str(first), str(end - first), str(round(env_s * 1e6)), str(unroll)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for first, end in itertools.pairwise(bounds)
    ]
    try:
        yield Fleet(processes)
    finally:
        for process in processes:
            process.kill()
        for process in processes:
            process.wait()
