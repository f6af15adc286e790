"""Settings of the commands that play a trained model."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from kubebeast_common.access.addresses import is_host_port
from kubebeast_learner.config.checks import (
    parse_env_kwargs,
    parse_wrappers,
    require,
    require_at_least,
    require_local,
    require_positive,
    require_seed,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class CheckpointConfig:
    """Selection of a trained model."""

    xpid: str = "latest"
    """Run that supplies its newest checkpoint; latest is the run that started last."""
    savedir: Path = Path("~/logs/kubebeast")
    """Folder that holds the runs."""
    checkpoint: Path | None = None
    """Checkpoint (.pt) or weights (.safetensors) to use instead of the run's newest."""
    trust_checkpoint: bool = False
    """Import and run the code that the file of checkpoint names: its model, its encoders, the module of its
    environment. Without it, such a file is rejected; a run that xpid names does not need it."""

    def __post_init__(self) -> None:
        require_local(self, "savedir", "checkpoint")


TRAINED = "train"
"""Value of a setting that stands for that of the training run."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PlayConfig(CheckpointConfig):
    """Play of a trained model."""

    seed: int = 1
    """Seed of the environments and of action sampling."""
    mode: Literal["greedy", "sample"] = "greedy"
    """Take the most likely action, or sample one from the policy as in training."""
    env: str = ""
    """Environment to play in; empty is that of the training run, or, of several tasks, the one that it began with."""
    preset: Literal["train", "auto", "none", "atari-v4", "atari-v5"] = "train"
    """Preprocessing; train is that of the training run, or auto for another env. Atari episodes are whole games
    here."""
    env_kwargs: str = ""
    """JSON object: arguments of the environment or overrides of the preset; empty is that of the training run, or none
    for another env."""
    wrappers: str = ""
    """Wrappers, in the notation of training, that replace those of the training run; '[]' is none. train uses those
    that the checkpoint names, and runs their code. Empty does the same for a run of train or mono that xpid names; for
    another env it is none."""
    time_limit: int | None = None
    """Steps after which the environment truncates an episode; 0 is the limit that it is registered with. None is that
    of the training run, or 0 for another env."""
    max_episode_steps: int = 100_000
    """Longest episode, in decisions of the agent; longer ones are cut off and marked."""

    def __post_init__(self) -> None:
        CheckpointConfig.__post_init__(self)
        require_seed(self.seed)
        require_at_least(1, self, "max_episode_steps")
        require_at_least(0, self, "time_limit")
        if self.env_kwargs:
            parse_env_kwargs(self.env_kwargs)
        if self.wrappers != TRAINED:
            parse_wrappers(self.wrappers)


@dataclass(frozen=True, kw_only=True, slots=True)
class EvalConfig(PlayConfig):
    """Settings of `kubebeast eval`."""

    episodes: int = 10
    """Whole episodes to play; each agent of a multi-agent environment has its own. Returns are never clipped."""
    json: bool = False
    """Print one JSON line instead of the table; with follow, one line for every checkpoint, in addition to the log."""
    follow: bool = False
    """Play every new checkpoint of the run until its training ends, and write the scores to eval.csv in its folder. The
    run may begin later."""
    linger: bool = False
    """With follow, stay after the end of the run and wait for further checkpoints, until SIGTERM."""
    http_address: str = ""
    """With follow, "host:port" of /healthz, /readyz and /metrics; empty disables them."""

    def __post_init__(self) -> None:
        PlayConfig.__post_init__(self)
        require_at_least(1, self, "episodes")
        if self.follow:
            checkpoint = None if self.checkpoint is None else str(self.checkpoint)
            require(checkpoint is None, "checkpoint", checkpoint, "is one file, follow plays all of the run xpid")
            is_plain = "/" not in self.xpid and self.xpid not in ("", ".", "..")
            require(is_plain, "xpid", self.xpid, "must be a plain name, that of the run's folder in savedir")
        # Without follow they are valid: KUBEBEAST_LINGER and KUBEBEAST_HTTP_ADDRESS may be meant for a learner.
        if self.follow and self.http_address:
            require(is_host_port(self.http_address), "http_address", self.http_address, 'must be "host:port"')


@dataclass(frozen=True, kw_only=True, slots=True)
class RenderConfig(PlayConfig):
    """Settings of `kubebeast render`."""

    out: Path = Path("episode.mp4")
    """Video to write, mp4 or gif by its suffix."""
    episodes: int = 1
    """Whole episodes to show, one after the other; those that eval plays with the same seed."""
    fps: float | None = None
    """Frames per second; None is the environment's own speed, for Atari 60 divided by the frame skip."""

    def __post_init__(self) -> None:
        PlayConfig.__post_init__(self)
        require_local(self, "out")
        require_at_least(1, self, "episodes")
        require_positive(self, "fps")
        require(self.out.suffix in (".mp4", ".gif"), "out", str(self.out), "must end in .mp4 or .gif")


@dataclass(frozen=True, kw_only=True, slots=True)
class ExportConfig(CheckpointConfig):
    """Settings of `kubebeast export`."""

    env: str = ""
    """Task that the actor plays, if there are several; empty is the one that the training run began with."""
    out: Path | None = None
    """File to write; None is model.pt2 or model.pt, by the format. Its description is written beside it, as .json."""
    format: Literal["export", "torchscript"] = "export"
    """torch.export (.pt2), or TorchScript (.pt)."""

    def __post_init__(self) -> None:
        CheckpointConfig.__post_init__(self)
        require_local(self, "out")
        if self.out is not None and self.format == "export":
            require(self.out.suffix == ".pt2", "out", str(self.out), "must end in .pt2, torch.export.load demands it")
