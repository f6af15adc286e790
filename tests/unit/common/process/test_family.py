"""All descendants of a process end with it, even if they try to escape."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness.chaos.simulators import WAYS, alive, started
from kubebeast_common.process import proc_table
from kubebeast_common.process.family import Family

STARTS = """
import os, sys
from pathlib import Path
from harness.chaos.simulators import WAYS, started
folder = Path(sys.argv[1])
WAYS[sys.argv[2]](folder)
while not started(folder):
    pass
print("started", flush=True)
sys.stdin.read()
"""
ROOT = Path(__file__).resolve().parents[4]


@contextmanager
def starting(family: Family, folder: Path, way: str) -> Iterator["subprocess.Popen[str]"]:
    """Starts a process of the family that has started another one and that ends with its standard input."""
    words = [sys.executable, "-c", STARTS, str(folder), way]
    with subprocess.Popen(
        words,
        cwd=ROOT,
        env={**os.environ, **family.variables},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None and process.stdout.readline() == "started\n"
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize("way", WAYS)
def test_all_that_a_process_has_started_is_killed_with_it(tmp_path: Path, way: str) -> None:
    family = Family()
    with starting(family, tmp_path, way) as process:
        family.look(process.pid)
        family.kill()
        assert process.wait(60.0) != 0
    assert started(tmp_path) and not alive(tmp_path)


@pytest.mark.parametrize("way", WAYS)
def test_orphans_of_a_process_that_died_are_killed(tmp_path: Path, way: str) -> None:
    family = Family()
    with starting(family, tmp_path, way) as process:
        family.look(process.pid)
        process.kill()
        process.wait(60.0)
        while not alive(tmp_path):  # a process that keeps forking is seldom seen
            pass
        family.kill()
    assert not alive(tmp_path)


def test_a_process_that_keeps_forking_is_killed_although_pids_have_started_again(tmp_path: Path) -> None:
    try:
        Path("/proc/sys/kernel/ns_last_pid").write_text("400")
    except OSError:
        pytest.skip("only root of the machine sets the next pid")
    family = Family()
    with starting(family, tmp_path, "forks over and over") as process:
        family.look(process.pid)
        family.kill()
    left = alive(tmp_path)
    generations = len(started(tmp_path))
    assert not left and len(started(tmp_path)) == generations


def test_threads_are_no_processes() -> None:
    before = proc_table.newest_pid()
    is_over = threading.Event()
    threads = [threading.Thread(target=is_over.wait) for _ in range(4)]
    for thread in threads:
        thread.start()
    child = subprocess.Popen(["sleep", "600"])
    found = {entry.pid for entry in proc_table.processes_since(before) if entry}
    is_over.set()
    child.kill()
    child.wait()
    assert child.pid in found
    assert not found & {thread.native_id for thread in threads}


def test_the_newest_processes_are_searched_first_also_if_pids_have_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("7", "320", "321", "32700"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "stat").write_text(f"{name} (a b) S 1 {'0 ' * 30}")
        (tmp_path / name / "status").write_text(f"Name:\ta b\nTgid:\t{name}\nPid:\t{name}\n")
    (tmp_path / "loadavg").write_text("0.00 0.00 0.00 1/80 321\n")
    monkeypatch.setattr(proc_table, "_PROC", tmp_path)
    assert [entry and entry.pid for entry in proc_table.processes()] == [321, 320, 7, 32700]
    assert [entry and entry.pid for entry in proc_table.processes_since(319)] == [321, 320]
    assert len(list(proc_table.processes_since(32690))) == 4


def test_another_family_lives_on(tmp_path: Path) -> None:
    mine, other = Family(), Family()
    for name in ("mine", "other"):
        (tmp_path / name).mkdir()
    with starting(mine, tmp_path / "mine", "daemon"), starting(other, tmp_path / "other", "daemon") as process:
        mine.kill()
        assert not alive(tmp_path / "mine") and alive(tmp_path / "other") and process.poll() is None
        other.kill()
    assert not alive(tmp_path / "other")


def test_a_family_within_another_one_ends_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outer = Family()
    for name, value in outer.variables.items():
        monkeypatch.setenv(name, value)
    inner = Family()
    with starting(inner, tmp_path, "daemon"):
        outer.kill()
    assert not alive(tmp_path)


def test_variables_and_signals_are_as_before_once_a_process_was_started() -> None:
    before = dict(os.environ)
    with Family().starting():
        assert dict(os.environ) != before
    assert dict(os.environ) == before


def test_an_adopted_process_that_ended_is_no_zombie_and_children_of_ones_own_are_left() -> None:
    code = """
import json, os, subprocess, time
from kubebeast_common.process.family import Adopted, adopt_orphans
from kubebeast_common.process.proc_table import children
adopt_orphans()
own = subprocess.Popen(["true"])
subprocess.run(["sh", "-c", "(exec sleep 0.2) & exit 0"], check=True)
adopted = Adopted()
assert len(adopted.new({own.pid})) == 1
while len(children(os.getpid())) > 1:
    adopted.look({own.pid})
print(json.dumps(own.wait()))
"""
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
    )
    assert json.loads(result.stdout) == 0


def test_a_process_that_forks_over_and_over_is_found_among_hundreds_that_ended(tmp_path: Path) -> None:
    code = """
import os, sys
from pathlib import Path
from harness.chaos.simulators import WAYS
from kubebeast_common.process.family import adopt_orphans, kill_descendants
adopt_orphans()
for _ in range(300):
    if os.fork() == 0:
        os._exit(0)
WAYS["forks over and over"](Path(sys.argv[1]))
kill_descendants()
"""
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], cwd=ROOT, check=True, timeout=300)
    assert started(tmp_path) and not alive(tmp_path)
