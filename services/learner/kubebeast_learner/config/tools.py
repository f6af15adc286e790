"""What the commands around training need: they read a run, they do not train."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from kubebeast_learner.config.checks import require


@dataclass(frozen=True, kw_only=True, slots=True)
class EvalConfig:
    """Everything `kubebeast eval` needs."""

    xpid: str = "latest"
    """Run whose newest checkpoint plays; latest is the run that started last."""
    savedir: Path = Path("~/logs/kubebeast")
    """Folder that holds the runs."""
    checkpoint: Path | None = None
    """Checkpoint file to play with instead of the run's newest."""
    episodes: int = 10
    """Whole episodes to play; returns are never clipped."""
    seed: int = 1
    """Seed of the environments and of action sampling."""
    mode: Literal["greedy", "sample"] = "greedy"
    """Take the likeliest action, or sample one from the policy as in training."""
    env: str = ""
    """Environment to play in; empty is the one of the training run."""
    preset: Literal["train", "auto", "none", "atari-v4", "atari-v5"] = "train"
    """Preprocessing; train is the training run's. An atari preset plays whole games here, never single lives."""
    max_episode_steps: int = 100_000
    """An episode that is longer, in decisions of the agent, is cut off and marked."""
    json: bool = False
    """Print one JSON line instead of the table."""

    def __post_init__(self) -> None:
        require(self.episodes >= 1, "episodes", self.episodes, "must be at least 1")
        require(self.max_episode_steps >= 1, "max_episode_steps", self.max_episode_steps, "must be at least 1")
