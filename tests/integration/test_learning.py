"""Whole runs learn: with env-servers and without, a stated return is reached in a stated budget, recipe included."""

import csv
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.learning, pytest.mark.slow, pytest.mark.timeout(300)]

CATCH_STEPS = 60_000
CATCH_THRESHOLD = 0.8
"""Mean return of 100 games; a random player has about -0.6, a perfect one 1."""


def final_return(folder: Path) -> float:
    with (folder / "fields.csv").open(newline="") as file:
        names = list(csv.reader(file))[-1]
    with (folder / "logs.csv").open(newline="") as file:
        rows = list(csv.DictReader((line for line in file if not line.startswith("#")), names))
    return float(rows[-1]["mean_episode_return"])


@pytest.mark.parametrize("command", ["train", "mono"])
@pytest.mark.parametrize("memory", ["--no-use-lstm", "--use-lstm"])
def test_catch_is_learnt_within_its_budget(tmp_path: Path, command: str, memory: str) -> None:
    words = [sys.executable, "-m", "kubebeast_learner", command, "--env=kubebeast_envserver.catch:Catch-v0"]
    settings = [f"--total-steps={CATCH_STEPS}", "--compile=off", "--seed=1"]
    places = [f"--savedir={tmp_path}", "--xpid=catch", "--progress=none"]
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"}

    subprocess.run([*words, *settings, memory, *places], check=True, env=environment, timeout=280)

    assert final_return(tmp_path / "catch") >= CATCH_THRESHOLD
