import sys
from pathlib import Path

import pytest

from benchmarks.peers import __main__ as peers
from benchmarks.peers import measure, venvs
from benchmarks.peers.peer import PEERS

TRAINS = """
import itertools, time
print("loading")
for step in itertools.count(0, 100):
    print({"step": step}, flush=True)
    time.sleep(0.01)
"""
"""Trains at 10 000 steps per second at most."""


def measured(program: str, step: str = r"'step': (\d+)", start_s: float = 30.0) -> measure.Measurement:
    command = [sys.executable, "-c", program]
    return measure.measure(command, None, step, start_s=start_s, warmup_s=0.1, window_s=0.3)


def measurement(steps: int) -> measure.Measurement:
    return measure.Measurement(seconds=1, steps=steps, cpu_s=2, machine_cpu_s=2.5, memory_mib=100)


def test_a_window_counts_steps_time_and_memory() -> None:
    result = measured(TRAINS)

    assert result.seconds >= 0.3
    assert result.steps > 0
    assert result.steps % 100 == 0
    assert result.memory_mib > 1
    assert 0 <= result.cpu_s <= result.machine_cpu_s


def test_processes_below_count_and_end_with_the_system() -> None:
    child = "import os, time; print(os.getpid(), flush=True); time.sleep(600)"
    program = f"import subprocess, sys\nsubprocess.Popen([sys.executable, '-c', {child!r}])\n{TRAINS}"
    alone, together = measured(TRAINS), measured(program)

    assert together.memory_mib > alone.memory_mib
    assert not [path for path in Path("/proc").glob("[0-9]*/cmdline") if child.encode() in _read(path)]


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def test_a_system_that_ends_says_why() -> None:
    with pytest.raises(measure.FailedError, match=r"ended: .*no such game"):
        measured("raise SystemExit('no such game')")


def test_a_system_without_progress_has_failed() -> None:
    with pytest.raises(measure.FailedError, match="no progress in 1 s: nothing yet"):
        measured("import time\nprint('nothing yet', flush=True)\ntime.sleep(600)", start_s=1)


def test_kubebeast_is_compared_with_the_fastest_of_the_others_and_they_with_its_slowest() -> None:
    round_ = {name: measurement(steps) for name, steps in (("kubebeast train", 900), ("kubebeast mono", 1200))}
    round_ |= {"a": measurement(300), "b": measurement(100)}

    assert peers.ratio("kubebeast train", round_) == 3
    assert peers.ratio("b", round_) == pytest.approx(1 / 9)
    assert peers.ratio("kubebeast mono", {"kubebeast mono": measurement(5)}) is None


def test_what_did_not_run_has_the_reason_in_the_table() -> None:
    (peer,) = (peer for peer in PEERS if peer.name == "PolyBeast")

    assert peers.summarise(peer, [{}], "needs --torchbeast") == peers.Row(system="PolyBeast", note="needs --torchbeast")


def test_frames_are_counted_by_cpu_time() -> None:
    assert measurement(100).frames_per_core_s == 100 * measure.FRAMES_PER_STEP / 2
    assert measurement(100).cores_used_by_others == 0.5


def test_without_requirements_a_system_runs_in_this_venv(tmp_path: Path) -> None:
    assert venvs.python_with((), tmp_path) == Path(sys.executable)


@pytest.mark.slow
def test_what_pip_cannot_find_is_named(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="kubebeast-has-no-such-package"):
        venvs.python_with(("kubebeast-has-no-such-package==1",), tmp_path)
