"""Environments of dm_env, MinAtar and MuJoCo, installed in a folder of their own, play and train."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.processes.training_process import TIMEOUT_S, command, environment, rows, run
from tests.integration.fresh_venv import INSTALL_TIMEOUT_S, ROOT, beside

pytestmark = [pytest.mark.slow, pytest.mark.timeout(INSTALL_TIMEOUT_S + 3 * TIMEOUT_S)]

PACKAGES = ("absl-py", "dm-env", "dm-tree", "glfw", "imageio", "minatar", "mujoco", "pyopengl", "shimmy")
"""11 MB of wheels. MinAtar draws with seaborn, which playing does not need."""
NUM_STEPS = 4000
SIZE = ("--num-actors=4", "--unroll-length=5", "--batch-size=4", f"--total-steps={NUM_STEPS}")
RUNS = {
    "HalfCheetah-v5": ("train", "--num-servers=1", "(float64 [17]) flattened to 17 numbers"),
    "MinAtar/Breakout-v1": (
        "mono",
        "--num-actor-processes=1",
        "bool [10, 10, 4]) as an image of 10x10 with 4 channels",
    ),
}
"""The command, its number of processes, and the logged form of the observation."""


@pytest.fixture
def places() -> Iterator[str]:
    with beside(*PACKAGES) as path:
        yield path


def test_environments_of_other_libraries_play_and_train(places: str, tmp_path: Path, subtests: pytest.Subtests) -> None:
    """One test, as the installation takes most of the time."""
    with subtests.test("rows"):
        words = [sys.executable, "-m", "pytest", "-q", str(Path(__file__).with_name("library_environments.py"))]
        subprocess.run(words, check=True, cwd=ROOT, timeout=TIMEOUT_S, env=environment(PYTHONPATH=places))
    for env, (name, processes, taken) in RUNS.items():
        with subtests.test(env):
            words = command(name, f"--env={env}", "--recipe=none", processes, "--compile=off", *SIZE)
            process = run([*words, f"--savedir={tmp_path}", f"--xpid={name}"], PYTHONPATH=places)
            assert process.returncode == 0, process.stderr
            last = rows(tmp_path / name)[-1]
            assert (int(last["step"]) >= NUM_STEPS, int(last["num_skipped_updates"])) == (True, 0)
            assert taken in process.stderr
