"""What the commands around training need: they read a run or look after a fleet, they do not train."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

import tyro

from kubebeast_common.access.addresses import is_host_port
from kubebeast_learner.config.checks import (
    parse_env_kwargs,
    parse_wrappers,
    require,
    require_at_least,
    require_positive,
    require_seed,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class CheckpointConfig:
    """Which trained model is meant."""

    xpid: str = "latest"
    """Run whose newest checkpoint is taken; latest is the run that started last."""
    savedir: Path = Path("~/logs/kubebeast")
    """Folder that holds the runs."""
    checkpoint: Path | None = None
    """Checkpoint (.pt) or weights (.safetensors) to take instead of the run's newest."""


TRAINED = "train"
"""Of a setting: what the training run had."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PlayConfig(CheckpointConfig):
    """How a trained model plays."""

    seed: int = 1
    """Seed of the environments and of action sampling."""
    mode: Literal["greedy", "sample"] = "greedy"
    """Take the likeliest action, or sample one from the policy as in training."""
    env: str = ""
    """Environment to play in; empty is the one of the training run, of several tasks the one that it began with."""
    preset: Literal["train", "auto", "none", "atari-v4", "atari-v5"] = "train"
    """Preprocessing; train is the training run's, of another env what auto is. Atari games are played whole here."""
    env_kwargs: str = ""
    """JSON object: arguments of the environment or overrides of the preset; empty is the training run's, of another env
    none."""
    wrappers: str = ""
    """As in training, in place of the training run's; '[]' is none. train takes those that the checkpoint names: their
    code runs here. Empty does so for a run that train or mono made and xpid names; of another env it is none."""
    time_limit: int | None = None
    """Steps after which the environment truncates an episode; 0 as it is registered. None is the training run's, of
    another env 0."""
    max_episode_steps: int = 100_000
    """An episode that is longer, in decisions of the agent, is cut off and marked."""

    def __post_init__(self) -> None:
        require_seed(self.seed)
        require_at_least(1, self, "max_episode_steps")
        require_at_least(0, self, "time_limit")
        if self.env_kwargs:
            parse_env_kwargs(self.env_kwargs)
        if self.wrappers != TRAINED:
            parse_wrappers(self.wrappers)


@dataclass(frozen=True, kw_only=True, slots=True)
class EvalConfig(PlayConfig):
    """Everything `kubebeast eval` needs."""

    episodes: int = 10
    """Whole episodes to play, of several agents each its own; returns are never clipped."""
    json: bool = False
    """Print one JSON line instead of the table; with follow, beside the log, one for every checkpoint."""
    follow: bool = False
    """Play every new checkpoint of the run until it has been trained to its end; the scores go into eval.csv of its
    folder. The run need not have begun."""
    linger: bool = False
    """With follow, stay after the end of the run and wait for further checkpoints, until SIGTERM."""
    http_address: str = ""
    """With follow, "host:port" of /healthz, /readyz and /metrics; empty serves none."""

    def __post_init__(self) -> None:
        PlayConfig.__post_init__(self)
        require_at_least(1, self, "episodes")
        if self.follow:
            checkpoint = None if self.checkpoint is None else str(self.checkpoint)
            require(checkpoint is None, "checkpoint", checkpoint, "is one file, follow plays all of the run xpid")
            is_plain = "/" not in self.xpid and self.xpid not in ("", ".", "..")
            require(is_plain, "xpid", self.xpid, "must be a plain name, that of the run's folder in savedir")
        # Without follow they are no mistake: KUBEBEAST_LINGER and KUBEBEAST_HTTP_ADDRESS may be meant for a learner.
        if self.follow and self.http_address:
            require(is_host_port(self.http_address), "http_address", self.http_address, 'must be "host:port"')


@dataclass(frozen=True, kw_only=True, slots=True)
class RenderConfig(PlayConfig):
    """Everything `kubebeast render` needs."""

    out: Path = Path("episode.mp4")
    """Video to write; mp4 or gif by its ending."""
    episodes: int = 1
    """Whole episodes to show, one after the other; those that eval plays with the same seed."""
    fps: float | None = None
    """Frames a second; None is the environment's own speed, for Atari 60 over the frame skip."""

    def __post_init__(self) -> None:
        PlayConfig.__post_init__(self)
        require_at_least(1, self, "episodes")
        require_positive(self, "fps")
        require(self.out.suffix in (".mp4", ".gif"), "out", str(self.out), "must end in .mp4 or .gif")


@dataclass(frozen=True, kw_only=True, slots=True)
class ExportConfig(CheckpointConfig):
    """Everything `kubebeast export` needs."""

    env: str = ""
    """Of several tasks the one that the actor plays; empty is the one that the training run began with."""
    out: Path | None = None
    """File to write, None is model.pt2 or model.pt by the format; its description goes beside it, as .json."""
    format: Literal["export", "torchscript"] = "export"
    """torch.export (.pt2), or TorchScript (.pt)."""

    def __post_init__(self) -> None:
        if self.out is not None and self.format == "export":
            require(self.out.suffix == ".pt2", "out", str(self.out), "must end in .pt2, torch.export.load demands it")


@dataclass(frozen=True, kw_only=True, slots=True)
class PlotConfig:
    """Everything `kubebeast plot` needs."""

    runs: tyro.conf.Positional[tuple[str, ...]]
    """Runs to draw: folders, or names under savedir, where pong-seed? stands for all that match. Runs that differ only
    in their seed share a line."""
    savedir: Path = Path("~/logs/kubebeast")
    """Folder that holds the runs."""
    out: Path = Path("plot.png")
    """Picture to write; png, svg or pdf by its ending."""
    csv: bool = False
    """Write the curves beside the picture, at most 200 rows a run."""
    returns: Literal["training", "eval"] = "training"
    """Draw the returns of training, or the scores of kubebeast eval --follow."""
    threshold: float | None = None
    """Return to mark, and to count the steps to."""
    bin_steps: int | None = None
    """Draw the mean return of the episodes that ended in every so many env-steps; None draws the logged mean of the
    newest episodes, which is smoother and lags."""
    x_max: float | None = None
    """Draw up to so many env-steps."""
    title: str = ""
    """Heading of the picture."""
    json: bool = False
    """Print one JSON line instead of the table."""

    def __post_init__(self) -> None:
        require(len(self.runs) > 0, "runs", self.runs, "name at least one")
        require_positive(self, "x_max", "bin_steps")
        reason = "is for the returns of training, eval has a score for each checkpoint"
        require(self.bin_steps is None or self.returns == "training", "bin_steps", self.bin_steps, reason)


@dataclass(frozen=True, kw_only=True, slots=True)
class ReportConfig:
    """Everything `kubebeast report` needs."""

    run: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="RUN")]
    """Run to report on: a folder, or a name under savedir; latest is the run that started last."""
    savedir: Path = Path("~/logs/kubebeast")
    """Folder that holds the runs."""
    out: Path | None = None
    """Page to write, .html; None is report.html in the run's folder."""

    def __post_init__(self) -> None:
        require(self.run != "", "run", self.run, "must be named")
        if self.out is not None:
            require(self.out.suffix in (".html", ".htm"), "out", str(self.out), "must end in .html")


@dataclass(frozen=True, kw_only=True, slots=True)
class ClusterConfig:
    """Which part of which Kubernetes cluster is meant."""

    namespace: Annotated[str, tyro.conf.arg(aliases=("-n",))] = ""
    """Namespace; empty is the context's, in a pod the pod's."""
    release: str = ""
    """Helm release; empty is every release of the namespace."""
    context: str = ""
    """Context of the kubeconfig; empty is its current one."""
    kubeconfig: Path | None = None
    """File with the cluster and the credentials; None goes by KUBECONFIG, in a pod by its service account."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FleetConfig(ClusterConfig):
    """Everything `kubebeast fleet` needs."""

    watch: bool = False
    """Look again every 2 s until Ctrl-C."""
    json: bool = False
    """Print one JSON line instead of the table."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FleetScaleConfig(ClusterConfig):
    """Everything `kubebeast fleet scale` needs."""

    group: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="GROUP")]
    """Group of env-servers, or the name of its Deployment."""
    replicas: Annotated[tyro.conf.Positional[int], tyro.conf.arg(metavar="N")]
    """Env-servers that the group is to have."""
    force: bool = False
    """Scale a group that an autoscaler looks after, too."""

    def __post_init__(self) -> None:
        require(self.group != "", "group", self.group, "must be named")
        require_at_least(0, self, "replicas")


@dataclass(frozen=True, kw_only=True, slots=True)
class TopConfig(ClusterConfig):
    """Everything `kubebeast top` needs. Any setting of ClusterConfig looks for the learner in Kubernetes."""

    learner: str | None = None
    """URL of the learner's --http-address; None is http://127.0.0.1:9090, unless Kubernetes is meant."""
    sort: Literal["env", "steps", "wait", "age", "name"] = "env"
    """Order of the env-servers: slowest environments, most steps/s, longest wait for actions, oldest, or by name."""
    streams: bool = False
    """A row for each stream, too."""
    once: bool = False
    """Show one view, with rates over a second, and end."""
    json: bool = False
    """Print a JSON object a view instead of the table."""

    @property
    def in_cluster(self) -> bool:
        """Whether the learner is looked for in Kubernetes."""
        return bool(self.namespace or self.release or self.context or self.kubeconfig)

    def __post_init__(self) -> None:
        if self.learner is not None:
            require(_is_http_url(self.learner), "learner", self.learner, "must be a URL such as http://127.0.0.1:9090")
            reason = "is one learner, namespace, release, context and kubeconfig name another"
            require(not self.in_cluster, "learner", self.learner, reason)


def _is_http_url(text: str) -> bool:
    try:
        url = urlsplit(text)
        return url.scheme in ("http", "https") and bool(url.hostname) and url.port != 0
    except ValueError:
        return False
