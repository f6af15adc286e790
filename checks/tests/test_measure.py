"""Costs of a command and its descendants, and their end."""

import os
import sys
from pathlib import Path

import pytest

from checks.measure import count_compilations, run

BURN = "import time\nend = time.process_time() + 0.3\nwhile time.process_time() < end: pass\n"
STATS = """# a.cc
direct_cache_hit
local_storage_hit
# b.cc
direct_cache_miss
preprocessed_cache_hit
# c.cc
cache_miss
"""


def python(code: str, folder: Path) -> tuple[int, float]:
    """Returns the exit status and CPU seconds of a Python program."""
    taken = run([sys.executable, "-c", code], env=dict(os.environ), cwd=folder)
    return taken.status, taken.cpu_seconds


@pytest.mark.parametrize("status", [0, 1, 5])
def test_the_exit_status_is_the_commands(status: int, tmp_path: Path) -> None:
    assert python(f"raise SystemExit({status})", tmp_path)[0] == status


def test_a_command_that_a_signal_ends_has_failed(tmp_path: Path) -> None:
    assert python("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", tmp_path)[0] != 0


def test_processor_time_of_a_grandchild_counts_whose_parent_has_ended(tmp_path: Path) -> None:
    (tmp_path / "burn.py").write_text(f"import os\n{BURN}os.write(int(os.environ['FD']), b'1')\n")
    (tmp_path / "parent.py").write_text(
        "import os, subprocess, sys\nsubprocess.Popen([sys.executable, 'burn.py'], pass_fds=[int(os.environ['FD'])])\n"
    )
    code = """
import os, subprocess, sys
reading, writing = os.pipe()
os.environ["FD"] = str(writing)
subprocess.run([sys.executable, "parent.py"], pass_fds=[writing], check=True)
os.read(reading, 1)
"""

    assert python(code, tmp_path)[1] > 0.3


@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
def test_a_process_that_is_left_behind_is_ended(tmp_path: Path) -> None:
    code = "import subprocess; print(subprocess.Popen(['sleep', '1000']).pid, file=open('pid', 'w'))"
    python(code, tmp_path)

    assert not Path("/proc", (tmp_path / "pid").read_text().strip()).exists()


@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
def test_an_orphan_that_has_ended_is_no_zombie_while_the_command_runs(tmp_path: Path) -> None:
    code = """
import os, subprocess, sys
parent = "import subprocess, sys; print(subprocess.Popen(['sleep', '0.1']).pid)"
done = subprocess.run([sys.executable, "-c", parent], stdout=subprocess.PIPE, check=True)
while os.path.exists(f"/proc/{int(done.stdout)}"):
    pass
"""

    assert python(code, tmp_path)[0] == 0


def test_its_output_goes_to_a_file(tmp_path: Path) -> None:
    with open(tmp_path / "log", "wb") as log:
        run(["sh", "-c", "echo out; echo err >&2"], env=dict(os.environ), cwd=tmp_path, output=log)

    assert (tmp_path / "log").read_text() == "out\nerr\n"


def test_compilations_are_counted_by_their_results() -> None:
    assert count_compilations(STATS) == (2, 1)
    assert count_compilations("") == (0, 0)
