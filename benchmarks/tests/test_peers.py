"""Measurements of a system from outside in the benchmark of peers, and their comparison."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from benchmarks.peers import __main__ as peers
from benchmarks.peers import measure, venvs
from benchmarks.peers.peer import PEERS

TRAINS = """
import itertools, sys, time
turns = open(sys.argv[1])
print("loading")
for step in itertools.accumulate(itertools.count()):
    print({"step": step}, flush=True)
    if step:
        turns.readline()
    done = time.process_time() + 0.2
    while time.process_time() < done:
        pass
"""
"""Program that, after each of the steps 1, 3, 6, 10..., waits until it is measured, then computes for 0.2 s."""
HAS_A_CHILD = """
import os, time
here, there = os.pipe()
if not os.fork():
    held = b"x" * (64 << 20)
    os.write(there, b".")
    time.sleep(600)
os.read(here, 1)
"""
NEXT_LINE_S = 1e-6
"""Time so short that the next line of progress ends it."""


@pytest.fixture
def turns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A FIFO for TRAINS, with a line for each time that it is measured."""
    path = tmp_path / "turns"
    os.mkfifo(path)
    look = measure._moment
    with open(os.open(path, os.O_RDWR), "wb", buffering=0) as fifo:

        def look_and_tell(process: psutil.Process, step: int) -> measure._Moment:
            moment = look(process, step)
            fifo.write(b"\n")
            return moment

        monkeypatch.setattr(measure, "_moment", look_and_tell)
        yield path


def measured(program: str, *arguments: str, start_s: float = 30.0) -> measure.Measurement:
    command = [sys.executable, "-c", program, *arguments]
    step = r"'step': (\d+)"
    return measure.measure(command, None, step, start_s=start_s, warmup_s=NEXT_LINE_S, window_s=NEXT_LINE_S)


def measurement(steps: int) -> measure.Measurement:
    return measure.Measurement(seconds=1, steps=steps, cpu_s=2, machine_cpu_s=2.5, memory_mib=100)


def test_a_window_is_from_the_line_that_ends_the_warmup_to_the_next(turns: Path) -> None:
    result = measured(TRAINS, str(turns))

    assert result.steps == 6 - 3
    assert result.seconds > 0
    assert result.cpu_s >= 0.1
    assert result.machine_cpu_s > 0
    assert result.memory_mib > 1


def test_processes_below_count_and_end_with_the_system(turns: Path) -> None:
    result = measured(HAS_A_CHILD + TRAINS, str(turns))

    assert result.memory_mib >= 64
    assert [
        process for process in psutil.process_iter(["cmdline"]) if str(turns) in (process.info["cmdline"] or [])
    ] == []


def test_a_system_that_ends_says_why() -> None:
    with pytest.raises(measure.FailedError, match=r"ended: .*no such game"):
        measured("raise SystemExit('no such game')")


def test_a_system_without_progress_has_failed() -> None:
    with pytest.raises(measure.FailedError, match=r"no progress in 0.1 s"):
        measured("import time\nprint('nothing yet', flush=True)\ntime.sleep(600)", start_s=0.1)


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
