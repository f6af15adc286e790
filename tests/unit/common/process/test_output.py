"""Output to a full volume is lost without an error in the process that prints it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PRINTS = """
import resource, sys
from kubebeast_common.process.output import outlive_full_volume
outlive_full_volume()
print("before", flush=True)
soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (10, hard))
for _ in range(100):
    print("lost " * 1000, flush=True)
print("lost, too", file=sys.stderr)
resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
print("after")
"""


def printed(path: Path, unbuffered: str = "") -> subprocess.CompletedProcess[bytes]:
    environ = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    command = [sys.executable, "-c", PRINTS]
    with open(path, "wb") as file:
        return subprocess.run(command, stdout=file, stderr=file, timeout=60, check=False, env=environ)


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_lines_that_do_not_fit_are_dropped_and_the_next_begins_anew(tmp_path: Path, unbuffered: str) -> None:
    path = tmp_path / "output"
    assert printed(path, unbuffered).returncode == 0
    lines = path.read_text().splitlines()
    assert lines[0] == "before" and lines[-1] == "after" and len(lines) <= 3


def test_a_device_that_is_always_full_ends_nothing() -> None:
    assert printed(Path("/dev/full")).returncode == 0


def test_a_reader_that_is_gone_is_noticed_as_ever() -> None:
    code = (
        "from kubebeast_common.process.output import outlive_full_volume as go; go(); [print(i) for i in range(10**6)]"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    assert "BrokenPipeError" in process.stderr.read()
    process.stderr.close()
    assert process.wait(60) != 0
