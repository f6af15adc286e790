"""Generated parts of the chart are current: settings in the schema, values in the README, the version."""

import subprocess
import sys

from tests.chart.chart import CHART


def test_generated_files_should_be_current() -> None:
    command = [sys.executable, str(CHART.parent / "generate"), "--check"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    assert (run.returncode, run.stdout + run.stderr) == (0, "")
