"""A process with a verdict ends with it after all hooks, without finalization; others end as usual."""

import subprocess
import sys
from pathlib import Path

import pytest

TIMEOUT_S = 60
PROGRAM = """
import atexit, os, sys
from kubebeast_common.process.verdict import end_with

class Global:
    def __del__(self, mkdir=os.mkdir):
        mkdir("finalized")

left_to_the_interpreter = Global()
verdict = {verdict}
end_with(lambda: verdict)
atexit.register(os.mkdir, "hook")
sys.stdout.write("last words")
sys.exit(5)
"""


@pytest.mark.parametrize(("verdict", "status", "is_finalized"), [(3, 3, False), (0, 0, False), (None, 5, True)])
def test_a_verdict_is_the_exit_status_after_all_hooks_and_leaves_out_the_finalization(
    verdict: int | None, status: int, is_finalized: bool, tmp_path: Path
) -> None:
    command = [sys.executable, "-c", PROGRAM.format(verdict=verdict)]
    process = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=TIMEOUT_S)
    assert (process.returncode, process.stdout) == (status, "last words")
    assert (tmp_path / "hook").exists()
    assert (tmp_path / "finalized").exists() == is_finalized
