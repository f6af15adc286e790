"""The script of the end-to-end tests begins with a cluster of its own and leaves none, whatever fails."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.unit.repository.documents import ROOT


@pytest.mark.parametrize(
    ("failing", "calls"),
    [
        ("up", ["down", "up --nodes 2", "down"]),
        ("tools", ["down", "up --nodes 2", "tools", "down"]),
        ("base-image", ["down", "up --nodes 2", "tools", "base-image", "down"]),
    ],
)
def test_a_failure_ends_the_run_and_stops_the_cluster(tmp_path: Path, failing: str, calls: list[str]) -> None:
    script = tmp_path / ".ci" / "end-to-end"
    script.parent.mkdir()
    shutil.copy(ROOT / ".ci" / "end-to-end", script)
    cluster = tmp_path / "cluster"
    log = tmp_path / "calls"
    cluster.write_text(f'#!/bin/sh\necho "$@" >>"{log}"\n[ "$1" != {failing} ] || exit 3\n', encoding="utf-8")
    cluster.chmod(0o755)
    environment = os.environ | {"CLUSTER_TOOL": str(cluster)}

    done = subprocess.run([script], env=environment, capture_output=True, text=True, timeout=60, check=False)

    assert done.returncode == 3, done.stderr
    assert log.read_text(encoding="utf-8").splitlines() == calls
