"""A broker as a process of the sweep, for learners that share a fleet."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ADDRESS = "127.0.0.1:4432"
"""Address on which it listens, the default of `kubebeast broker`."""
OUTPUT = "broker.txt"
END_S = 5.0
"""Time for its end before it is killed."""


@contextlib.contextmanager
def broker_of(broker: str, folder: Path, *, is_needed: bool) -> Iterator[str]:
    """Yields the address of a broker: `broker`, or that of one that runs during the block if it is needed; "" if not.

    Its output is added to a file in `folder`. Raises OSError.
    """
    if broker or not is_needed:
        yield broker
        return
    cores = ",".join(map(str, os.sched_getaffinity(0))) if hasattr(os, "sched_getaffinity") else "0"
    program = [sys.executable, "-m", "kubebeast_learner", "broker", f"--address={ADDRESS}"]
    words = [sys.executable, "-m", "kubebeast_sweep.processes.launched", str(os.getpid()), cores, *program]
    with open(folder / OUTPUT, "ab") as output:
        process = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
        )
    try:
        yield ADDRESS
    finally:
        process.terminate()
        try:
            process.wait(END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
