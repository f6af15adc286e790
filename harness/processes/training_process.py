"""Training commands in separate processes, as users run them, and readers of their files."""

import csv
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import torch

from harness.processes import warm_start

TIMEOUT_S = 300
FLAGS = [
    "--env=CartPole-v1",
    "--recipe=CartPole-v1",
    "--num-actors=4",
    "--unroll-length=10",
    "--batch-size=4",
    "--compile=off",
    "--log-interval-s=0.2",
    "--progress=json",
]
PROCESSES = {"train": "--num-servers=2", "mono": "--num-actor-processes=2"}


TRAININGS = ("mono", "train", "learner")


def command(name: str, *flags: str) -> list[str]:
    """Returns a command of the learner's package. Trainings have TorchBeast's settings unless the flags name others:
    with the default recipe they would open twice, and the tests of other things would be slower.
    """
    return [sys.executable, "-m", "kubebeast_learner", name, *(["--recipe=torchbeast"] * (name in TRAININGS)), *flags]


def training_command(name: str, savedir: Path, *flags: str) -> list[str]:
    """Returns `kubebeast train` or `mono` on CartPole: two processes with two environments each, and run id "run"."""
    return command(name, *FLAGS, PROCESSES[name], f"--savedir={savedir}", "--xpid=run", *flags)


def environment(**variables: str) -> dict[str, str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("KUBEBEAST_")}
    return {**clean, "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1", **variables}


def run(words: list[str], **variables: str) -> subprocess.CompletedProcess[str]:
    """Runs a command to its end; `python -m PACKAGE ARGUMENTS` starts warm."""
    if words[1] == "-m":
        return warm_start.run(words, timeout=TIMEOUT_S, env=environment(**variables))
    return subprocess.run(words, capture_output=True, text=True, timeout=TIMEOUT_S, env=environment(**variables))


def snapshots(output: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in output.splitlines() if line.startswith("{")]


def rows(folder: Path) -> list[dict[str, str]]:
    with open(folder / "fields.csv", newline="") as file:
        names = list(csv.reader(file))[-1]
    with open(folder / "logs.csv", newline="") as file:
        return list(csv.DictReader((line for line in file if not line.startswith("#")), names))


def checkpoint_steps(folder: Path) -> list[int]:
    paths = sorted(folder.glob("checkpoint-*.pt"))
    return [torch.load(path, weights_only=True)["step"] for path in paths]


def was_successful(folder: Path) -> bool:
    successful: bool = json.loads((folder / "meta.json").read_text())["successful"]
    return successful
