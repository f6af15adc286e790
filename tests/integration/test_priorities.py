"""If cores are short, updates run before environments and these before inference: priorities of a running training."""

import json
import os
import sys
from pathlib import Path

import psutil
import pytest

from harness.processes import warm_start
from harness.processes.training_process import TIMEOUT_S, environment, training_command
from kubebeast_learner.machine.priority import ENVIRONMENTS, INFERENCE
from tests.child_processes import ENV_SERVER, SPAWNED, children

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a priority is a whole process's")


def nice_values(pid: int) -> list[int]:
    """Returns the nice values of the threads of a process; the first is the main thread's."""
    threads = sorted(int(folder.name) for folder in Path(f"/proc/{pid}/task").iterdir())
    return [os.getpriority(os.PRIO_PROCESS, thread) for thread in threads]


@pytest.mark.parametrize(("name", "actors", "inference_threads"), [("train", ENV_SERVER, 1), ("mono", SPAWNED, 0)])
def test_updates_come_before_environments_and_those_before_inference(
    tmp_path: Path, name: str, actors: str, inference_threads: int
) -> None:
    words = training_command(name, tmp_path, "--total-steps=100000000", "--learner-threads=1")
    with warm_start.Process(words, env=environment()) as process:
        found, step = list[psutil.Process](), 0
        # One actor of mono may fill a batch before the other has begun.
        while step == 0 or any(child.nice() == os.getpriority(os.PRIO_PROCESS, process.pid) for child in found):
            step = json.loads(process.stdout.readline())["step"]
            found = children(process.pid, actors)
        update, *others = nice_values(process.pid)
        environments = [value - update for child in found for value in nice_values(child.pid)]
        process.terminate()
        process.communicate(timeout=TIMEOUT_S)
    assert update == os.getpriority(os.PRIO_PROCESS, 0)
    assert len(found) == 2 and set(environments) == {ENVIRONMENTS}
    assert [value - update for value in others if value != update] == [INFERENCE] * inference_threads
