"""Settings of the commands that watch a run or a fleet."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

import tyro

from kubebeast_common.access.places import require_place
from kubebeast_common.settings import require, require_at_least, require_local, require_positive


@dataclass(frozen=True, kw_only=True, slots=True)
class PlotConfig:
    """Settings of `kubebeast plot`."""

    runs: tyro.conf.Positional[tuple[str, ...]]
    """Runs to draw: folders, or names under savedir, in which ? and * are wildcards, e.g. pong-seed?. Runs that differ
    only in their seed share a line."""
    savedir: str = "~/logs/kubebeast"
    """Folder that holds the runs, or the URL of a bucket: s3://, gs:// or az://."""
    out: Path = Path("plot.png")
    """Image to write; png, svg or pdf by its suffix."""
    csv: bool = False
    """Write the curves beside the image, at most 200 rows per run."""
    returns: Literal["training", "eval"] = "training"
    """Draw the returns of training, or the scores of kubebeast eval --follow."""
    evaluator: str = ""
    """Name of the evaluator (eval --follow) to draw if returns is eval; empty is the one without a name, or the only
    one."""
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
        require_place("savedir", self.savedir)
        require_local(self, "out")
        require(len(self.runs) > 0, "runs", self.runs, "name at least one")
        require_positive(self, "x_max", "bin_steps")
        reason = "is for the returns of training, eval has a score for each checkpoint"
        require(self.bin_steps is None or self.returns == "training", "bin_steps", self.bin_steps, reason)
        reason = "names scores, which returns = 'eval' draws"
        require(not self.evaluator or self.returns == "eval", "evaluator", self.evaluator, reason)


@dataclass(frozen=True, kw_only=True, slots=True)
class ReportConfig:
    """Settings of `kubebeast report`."""

    run: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="RUN")]
    """Run to report on: a folder, or a name under savedir; latest is the run that started last."""
    savedir: str = "~/logs/kubebeast"
    """Folder that holds the runs, or the URL of a bucket: s3://, gs:// or az://."""
    out: Path | None = None
    """HTML page to write; None is report.html in the run's folder, or NAME-report.html here if it is in a bucket."""
    text: bool = False
    """Print the report as text instead, without pictures."""

    def __post_init__(self) -> None:
        require_place("savedir", self.savedir)
        require_local(self, "out")
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
    unless a setting selects Kubernetes. `--learner` itself may be left out: kubebeast top HOST:PORT."""
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
