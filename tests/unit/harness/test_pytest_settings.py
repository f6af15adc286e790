"""Settings in the environment reach no test."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PROGRAM = "import harness.pytest_settings, os; print([name for name in os.environ if name.startswith('KUBEBEAST_')])"


def test_settings_in_the_environment_do_not_reach_the_tests() -> None:
    environ = {**os.environ, "KUBEBEAST_ENV": "Taxi-v3", "KUBEBEAST_E2E_TAG": "1"}
    printed = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=ROOT, env=environ, stdout=subprocess.PIPE, text=True, check=True
    )
    assert printed.stdout == "[]\n"
