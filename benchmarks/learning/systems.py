"""The compared systems, and their commands to train one environment once."""

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.learning.tasks import Task
from kubebeast_learner.machine.cores import num_cores

GYMNASIUM = "gymnasium==1.3.0"
OPENCV = "opencv-python-headless==4.11.0.86"
SB3 = ("stable-baselines3==2.9.2", GYMNASIUM)
RUN = "run"
"""Name of the folder of a run."""

Command = Callable[[Path, Task, int, int, Path], Sequence[str]]
"""Function from a Python, a task, a seed, a number of steps and a folder to a command that writes
folder/RUN/logs.csv."""


@dataclass(frozen=True, kw_only=True, slots=True)
class System:
    name: str
    command: Command
    requirements: tuple[str, ...] = ()
    """Packages besides torch and those of the task for a separate venv; without any, it runs in the current venv."""
    resumes: bool = field(default=False)
    """True if the same command goes on with a run that was cut off."""


def _kubebeast(name: str, *flags: str) -> Command:
    def command(python: Path, task: Task, seed: int, steps: int, folder: Path) -> Sequence[str]:
        words = [str(python), "-m", "kubebeast_learner", name, f"--env={task.env}", f"--seed={seed}"]
        words += [f"--total-steps={steps}", f"--savedir={folder}", f"--xpid={RUN}", "--progress=none"]
        return [*words, "--learner-threads=1", "--compile=off", "--log-interval-s=0.5", *flags]

    return command


def _kubebeast_impala(python: Path, task: Task, seed: int, steps: int, folder: Path) -> Sequence[str]:
    """The deep network and the settings of IMPALA's Atari runs (arXiv:1802.01561, table G.1), for a GPU."""
    words = [str(python), "-m", "kubebeast_learner", "train", f"--env={task.env}", f"--seed={seed}"]
    words += [f"--total-steps={steps}", f"--savedir={folder}", f"--xpid={RUN}", "--progress=none"]
    words += ["--recipe=torchbeast", "--model=deep", "--unroll-length=20", "--batch-size=32", "--learning-rate=0.0006"]
    return [*words, "--entropy-cost=0.01", "--num-actors=256", f"--num-servers={max(1, num_cores() - 1)}"]


def _program(name: str) -> Command:
    def command(python: Path, task: Task, seed: int, steps: int, folder: Path) -> Sequence[str]:
        settings = {"env": task.env, "inputs": task.inputs, "seed": seed, "steps": steps, "folder": str(folder / RUN)}
        return [str(python), "-m", f"benchmarks.learning.programs.{name}", json.dumps(settings)]

    return command


SYSTEMS = (
    System(name="kubebeast", command=_kubebeast("mono"), resumes=True),
    System(name="kubebeast-lstm", command=_kubebeast("mono", "--use-lstm"), resumes=True),
    System(name="kubebeast-lag1", command=_kubebeast("mono", "--lag=1"), resumes=True),
    System(name="kubebeast-train", command=_kubebeast("train"), resumes=True),
    System(name="kubebeast-impala", command=_kubebeast_impala, resumes=True),
    System(name="sb3-ppo", command=_program("sb3"), requirements=SB3),
    System(name="sb3-recurrent-ppo", command=_program("sb3_recurrent"), requirements=(*SB3, "sb3-contrib==2.9.0")),
    System(name="random", command=_program("random_policy"), requirements=(GYMNASIUM,)),
    System(
        name="sample-factory",  # plays games of Atari alone
        command=_program("sample_factory"),
        requirements=("sample-factory==2.1.1", "gymnasium==0.29.1", "setuptools<81", "ale-py==0.10.1", OPENCV),
    ),
    System(
        name="rl-games",  # plays Pong alone
        command=_program("rl_games"),
        requirements=("rl-games==1.6.5", "envpool==1.2.5", OPENCV, GYMNASIUM),
    ),
    System(name="pqn", command=_program("pqn"), requirements=(GYMNASIUM,)),
)
BY_NAME = {system.name: system for system in SYSTEMS}
THIS_PYTHON = Path(sys.executable)
