"""The compared systems: their requirements, and their commands to train Pong with the shallow network."""

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path

import torch

from benchmarks.peers.settings import Settings
from kubebeast_learner.algorithm.precision import has_bf16_arithmetic

Command = Callable[[Path, Settings], Sequence[str]]
"""Function from the Python of the system's venv and the settings to a command that trains until it is stopped."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Peer:
    name: str
    requirements: Sequence[str] = ()
    """Packages besides torch for a separate venv; if there are none, it runs in the current venv."""
    command: Command
    needs_checkout: bool = False
    """True if it runs in the checkout of TorchBeast instead of the root of this repository."""
    step: str = r'"step": (\d+)'
    """Regular expression that finds the env-steps so far in a line of its output."""
    note: str = ""
    """Difference of its work from that of the others."""


def _kubebeast(name: str, *flags: str) -> Command:
    def command(python: Path, settings: Settings) -> Sequence[str]:
        words = [str(python), "-m", "kubebeast_learner", name, "--env", "PongNoFrameskip-v4", "--model", "shallow"]
        words += ["--recipe", "torchbeast"]  # one gradient step for each batch, as the others make
        words += ["--progress", "json", "--log-interval-s", "0.5", "--disable-checkpoint", "--xpid", "peer"]
        words += ["--savedir", str(settings.work / "runs"), "--total-steps", "1000000000", *flags]
        return [*words, "--num-actors", "64", "--unroll-length", "20", "--batch-size", "8"]

    return command


def _program(name: str) -> Command:
    return lambda python, settings: [str(python), "-m", f"benchmarks.peers.programs.{name}", str(settings.epochs)]


def _torchbeast(module: str, *flags: str) -> Command:
    def command(python: Path, settings: Settings) -> Sequence[str]:
        words = [str(python), "-m", f"torchbeast.{module}", "--env", "PongNoFrameskip-v4", "--xpid", "peer"]
        words += ["--savedir", str(settings.work / "runs"), "--total_steps", "1000000000", "--disable_checkpoint"]
        return [*words, "--unroll_length", "20", "--batch_size", "8", *flags]

    return command


_OPENCV = "opencv-python-headless==4.11.0.86"
_ATARI = ("ale-py==0.11.2", _OPENCV)
_GYM = ("gym==0.17.3", "atari-py==0.2.6", _OPENCV, "numpy<2", "gitpython")
_SPS = r"Steps? (\d+) @"

PRECISIONS = ("bf16", "fp32") if has_bf16_arithmetic(torch.device("cpu")) else ("fp32",)
"""Precisions of KubeBeast, with its default on this machine first; the others support only fp32."""

PEERS = (
    *(
        Peer(
            name=f"kubebeast {command}, {precision}", command=_kubebeast(command, f"--precision={precision}", processes)
        )
        for precision in PRECISIONS
        for command, processes in (("train", "--num-servers=3"), ("mono", "--num-actor-processes=2"))
    ),
    Peer(
        name="Stable-Baselines3 PPO",
        requirements=("stable-baselines3==2.9.2", "gymnasium==1.3.0", *_ATARI),
        command=_program("sb3"),
        note="no V-trace; rollouts and updates take turns",
    ),
    Peer(
        name="Sample Factory APPO",
        requirements=("sample-factory==2.1.1", "gymnasium==0.29.1", "setuptools<81", "ale-py==0.10.1", _OPENCV),
        command=_program("sample_factory"),
    ),
    Peer(
        name="RLlib IMPALA",
        requirements=("ray[rllib]==2.60.0", *_ATARI),
        command=_program("rllib"),
    ),
    Peer(
        name="MonoBeast",
        requirements=_GYM,
        command=_torchbeast("monobeast", "--num_actors", "2", "--num_threads", "1"),
        needs_checkout=True,
        step=_SPS,
    ),
    Peer(
        name="PolyBeast",
        requirements=_GYM,
        command=_torchbeast("polybeast", "--num_servers", "8", "--num_actors", "8"),
        needs_checkout=True,
        step=_SPS,
        note="needs its C++ extensions",
    ),
)
