"""The CPU time of a process and its descendants is read from /proc."""

import os
from pathlib import Path

import pytest

from kubebeast_learner.machine.process_cpu import cpu_seconds_of_tree

TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")


def add(proc: Path, pid: int, parent: int, seconds: float, name: str = "python") -> None:
    """Adds a process that spent half of its time in the system."""
    folder = proc / str(pid)
    folder.mkdir()
    half = round(seconds * TICKS_A_SECOND / 2)
    columns = ["S", str(parent), *["0"] * 9, str(half), str(half), *["0"] * 30]
    (folder / "stat").write_text(f"{pid} ({name}) {' '.join(columns)}\n", encoding="utf-8")


def test_a_process_and_all_below_it_count(tmp_path: Path) -> None:
    add(tmp_path, 1, 0, 100.0)
    add(tmp_path, 20, 1, 4.0)
    add(tmp_path, 21, 20, 2.0, name="a) S 1 (odd name")
    add(tmp_path, 22, 21, 1.0)
    add(tmp_path, 30, 1, 50.0)
    (tmp_path / "cpuinfo").write_text("", encoding="utf-8")

    assert cpu_seconds_of_tree(20, tmp_path) == pytest.approx(7.0)
    assert cpu_seconds_of_tree(22, tmp_path) == pytest.approx(1.0)
    assert cpu_seconds_of_tree(99, tmp_path) == 0.0


def test_this_process_has_used_some() -> None:
    assert cpu_seconds_of_tree(os.getpid()) > 0.0
