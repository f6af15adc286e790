"""Settings of the commands that play a trained model."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from kubebeast_common.access.addresses import is_host_port
from kubebeast_common.access.places import require_place
from kubebeast_learner.config.checks import (
    parse_env_kwargs,
    parse_wrappers,
    require,
    require_at_least,
    require_evaluator,
    require_local,
    require_positive,
    require_seed,
)
from kubebeast_learner.config.episodes.curriculum import is_json, parse_levels


@dataclass(frozen=True, kw_only=True, slots=True)
class CheckpointConfig:
    """Selection of a trained model."""

    xpid: str = "latest"
    """Run that supplies its newest or best checkpoint; latest is the run that started last."""
    savedir: str = "~/logs/kubebeast"
    """Folder that holds the runs, or the URL of a bucket: s3://, gs:// or az://."""
    checkpoint: Path | None = None
    """Checkpoint (.pt), weights (.safetensors) or a folder with weights, such as one of kubebeast publish, to use
    instead of the run's newest checkpoint."""
    trust_checkpoint: bool = False
    """Import and run the code that the file of checkpoint names: its model, its encoders, the module of its
    environment. Without it, such a file is rejected; a run that xpid names does not need it."""
    best: bool = False
    """Use the best checkpoint of the run and not its newest: by the scores of eval --follow if it has any, else by
    those of its training."""
    best_evaluator: str = ""
    """Name of the evaluator (eval --follow) that decides on the best; empty is the one without a name, or the only
    one."""

    def __post_init__(self) -> None:
        require_place("savedir", self.savedir)
        require_local(self, "checkpoint")
        require(not self.best or self.checkpoint is None, "best", self.best, "checkpoint names a file already")
        require_evaluator("best_evaluator", self.best_evaluator)


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
    levels: str = ""
    """Levels to play in turn, one an episode, in the forms of the training's setting: options of resets. Empty: resets
    have no options."""
    against: str = ""
    """Policy of all agents of an environment but one, which the checkpoint plays: random; league, each version in the
    league of the checkpoint; or module:Class of your own. Empty: the checkpoint plays all agents."""
    json: bool = False
    """Print one JSON line instead of the table; with follow, one line for every checkpoint, in addition to the log."""
    follow: bool = False
    """Play every new checkpoint of the run until its training ends, and write the scores to eval.csv in its folder. The
    run may begin later."""
    name: str = ""
    """With follow, name of this evaluator: several of one run, each with settings of its own, need different names. The
    scores are in eval-NAME.csv."""
    linger: bool = False
    """With follow, stay after the end of the run and wait for further checkpoints, until SIGTERM."""
    http_address: str = ""
    """With follow, "host:port" of /healthz, /readyz and /metrics; empty disables them."""

    def __post_init__(self) -> None:
        PlayConfig.__post_init__(self)
        require_at_least(1, self, "episodes")
        if is_json(self.levels):
            parse_levels(self.levels)
        is_known = self.against in ("", "random", "league") or ":" in self.against
        require(is_known, "against", self.against, "must be random, league or module:Class")
        require(not self.name or self.follow, "name", self.name, "names an evaluator, which needs follow")
        require_evaluator("name", self.name)
        if self.follow:
            require(not self.best, "best", self.best, "is one checkpoint, follow plays all of the run xpid")
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
class ExportDataConfig:
    """Settings of `kubebeast export-data`."""

    recording: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="RUN_OR_FOLDER")]
    """Recording: its folder, or the name or folder of the run that has made it."""
    to: str
    """New data set: a folder, or minari://NAME-v0 in Minari's own folder (MINARI_DATASETS_PATH)."""
    format: Literal["minari"] = "minari"
    """Format of the data set."""
    whole_episodes: bool = True
    """Leave out episodes that began before the recording or end after it. Otherwise their recorded part is an episode,
    which is marked as truncated."""
    savedir: str = "~/logs/kubebeast"
    """Folder that holds the runs."""

    def __post_init__(self) -> None:
        require_place("savedir", self.savedir)
        require_local(self, "recording")
        require(self.to not in ("", "minari://"), "to", self.to, "must name a data set")
        is_minari = self.to.startswith("minari://")
        require(is_minari or "://" not in self.to, "to", self.to, "must be a folder or begin with minari://")


_REPOSITORY = re.compile(r"[\w.-]+/[\w.-]+")


@dataclass(frozen=True, kw_only=True, slots=True)
class PublishConfig:
    """Settings of `kubebeast publish`."""

    run: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="RUN")]
    """Trained model: a run, by its name under savedir, its folder or its URL, with @step for an older checkpoint; or a
    checkpoint or weights file. latest is the run that started last."""
    savedir: str = "~/logs/kubebeast"
    """Folder that holds the runs, or the URL of a bucket: s3://, gs:// or az://."""
    out: Path | None = None
    """Folder to write; None is NAME-model."""
    video: Path | None = None
    """Video for the page, mp4 or gif, such as one of kubebeast render."""
    to_hub: str = ""
    """Repository on the Hugging Face Hub to push the folder to, OWNER/NAME; it is created if there is none."""
    private: bool = False
    """Push only to a repository that is private; a new one is."""

    def __post_init__(self) -> None:
        require_place("savedir", self.savedir)
        require_local(self, "out", "video")
        require(self.run != "", "run", self.run, "must be named")
        if self.video is not None:
            require(self.video.suffix in (".mp4", ".gif"), "video", str(self.video), "must end in .mp4 or .gif")
        is_repository = not self.to_hub or _REPOSITORY.fullmatch(self.to_hub) is not None
        require(is_repository, "to_hub", self.to_hub, "must be OWNER/NAME")
        require(
            self.to_hub != "" or not self.private, "private", self.private, "is for a repository, to_hub names none"
        )


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
