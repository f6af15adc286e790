"""Settings of the commands around training, which inspect a run or manage a fleet."""

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


@dataclass(frozen=True, kw_only=True, slots=True)
class PlotConfig:
    """Settings of `kubebeast plot`."""

    runs: tyro.conf.Positional[tuple[str, ...]]
    """Runs to draw: folders, or names under savedir, in which ? and * are wildcards, e.g. pong-seed?. Runs that differ
    only in their seed share a line."""
    savedir: Path = Path("~/logs/kubebeast")
    """Folder that holds the runs."""
    out: Path = Path("plot.png")
    """Image to write; png, svg or pdf by its suffix."""
    csv: bool = False
    """Write the curves beside the image, at most 200 rows per run."""
    returns: Literal["training", "eval"] = "training"
    """Draw the returns of training, or the scores of kubebeast eval --follow."""
    threshold: float | None = None
    """Return to mark, and to count the steps to."""
    bin_steps: int | None = None
    """Draw the mean return of the episodes that ended in each bin of this many env-steps; None draws the logged mean of
    the newest episodes, which is smoother and lags."""
    x_max: float | None = None
    """Largest number of env-steps to draw."""
    title: str = ""
    """Title of the image."""
    json: bool = False
    """Print one JSON line instead of the table."""

    def __post_init__(self) -> None:
        require_local(self, "savedir", "out")
        require(len(self.runs) > 0, "runs", self.runs, "name at least one")
        require_positive(self, "x_max", "bin_steps")
        reason = "is for the returns of training, eval has a score for each checkpoint"
        require(self.bin_steps is None or self.returns == "training", "bin_steps", self.bin_steps, reason)


@dataclass(frozen=True, kw_only=True, slots=True)
class ReportConfig:
    """Settings of `kubebeast report`."""

    run: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="RUN")]
    """Run to report on: a folder, or a name under savedir; latest is the run that started last."""
    savedir: Path = Path("~/logs/kubebeast")
    """Folder that holds the runs."""
    out: Path | None = None
    """HTML page to write; None is report.html in the run's folder."""

    def __post_init__(self) -> None:
        require_local(self, "savedir", "out")
        require(self.run != "", "run", self.run, "must be named")
        if self.out is not None:
            require(self.out.suffix in (".html", ".htm"), "out", str(self.out), "must end in .html")


@dataclass(frozen=True, kw_only=True, slots=True)
class ClusterConfig:
    """Location in a Kubernetes cluster."""

    namespace: Annotated[str, tyro.conf.arg(aliases=("-n",))] = ""
    """Namespace; empty is that of the context, or, in a pod, that of the pod."""
    release: str = ""
    """Helm release; empty is every release of the namespace."""
    context: str = ""
    """Context of the kubeconfig; empty is the current one."""
    kubeconfig: Path | None = None
    """File with the cluster and the credentials; None uses KUBECONFIG, or, in a pod, its service account."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FleetConfig(ClusterConfig):
    """Settings of `kubebeast fleet`."""

    watch: bool = False
    """Refresh every 2 s until Ctrl-C."""
    json: bool = False
    """Print one JSON line instead of the table."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FleetScaleConfig(ClusterConfig):
    """Settings of `kubebeast fleet scale`."""

    group: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="GROUP")]
    """Group of env-servers, or the name of its Deployment."""
    replicas: Annotated[tyro.conf.Positional[int], tyro.conf.arg(metavar="N")]
    """Number of env-servers that the group should have."""
    force: bool = False
    """Scale the group even if an autoscaler manages it."""

    def __post_init__(self) -> None:
        require(self.group != "", "group", self.group, "must be named")
        require_at_least(0, self, "replicas")


@dataclass(frozen=True, kw_only=True, slots=True)
class TopConfig(ClusterConfig):
    """Settings of `kubebeast top`. Any setting of ClusterConfig searches for the learner in Kubernetes."""

    learner: str | None = None
    """Value of the learner's --http-address: HOST:PORT, HOST for its port 9090, or a URL; None is 127.0.0.1:9090,
    unless a setting selects Kubernetes."""
    sort: Literal["env", "steps", "wait", "age", "name"] = "env"
    """Order of the env-servers: slowest environments, most steps/s, longest wait for actions, oldest, or by name."""
    streams: bool = False
    """Show a row for each stream, too."""
    once: bool = False
    """Show one view, with rates over one second, and exit."""
    json: bool = False
    """Print one JSON object per view instead of the table."""

    @property
    def in_cluster(self) -> bool:
        """True if the learner is searched for in Kubernetes."""
        return bool(self.namespace or self.release or self.context or self.kubeconfig)

    def __post_init__(self) -> None:
        if self.learner is not None:
            reason = "must be HOST:PORT such as 127.0.0.1:9090, HOST, or a URL"
            require(_is_http_url(http_url(self.learner)), "learner", self.learner, reason)
            reason = "is one learner, namespace, release, context and kubeconfig name another"
            require(not self.in_cluster, "learner", self.learner, reason)


@dataclass(frozen=True, kw_only=True, slots=True)
class CompletionConfig:
    """Settings of `kubebeast completion`."""

    shell: Annotated[tyro.conf.Positional[Literal["bash", "zsh", "fish"]], tyro.conf.arg(metavar="SHELL")]
    """Shell to complete for: bash, zsh or fish."""


METRICS_PORT = 9090
"""Default port of a learner's metrics, here and in the chart."""


def http_url(address: str) -> str:
    """Returns the URL of "host:port", "host" or an IPv6 address with or without brackets; a URL stays unchanged."""
    if "://" in address:
        return address
    host, separator, rest = address.partition("/")
    if host.count(":") > 1 and not host.startswith("["):
        host = f"[{host}]"
    has_port = ":" in host.rpartition("]")[2]
    return f"http://{host if has_port else f'{host}:{METRICS_PORT}'}{separator}{rest}"


def _is_http_url(text: str) -> bool:
    try:
        url = urlsplit(text)
        return url.scheme in ("http", "https") and bool(url.hostname) and url.port != 0
    except ValueError:
        return False
