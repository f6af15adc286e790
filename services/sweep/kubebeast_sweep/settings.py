"""Settings of `kubebeast sweep`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from kubebeast_common.access.addresses import is_host_port
from kubebeast_common.access.places import require_place
from kubebeast_common.settings import require, require_at_least, require_local


@dataclass(frozen=True, kw_only=True, slots=True)
class SweepConfig:
    """Settings of `kubebeast sweep`."""

    file: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="FILE")]
    """YAML file with the parameters and the settings of the runs (docs/sweeps.md)."""
    savedir: str = "~/logs/kubebeast"
    """Folder that holds the sweeps; each writes to savedir/name, with a folder for every run."""
    name: str = ""
    """Name of the sweep; one that exists is resumed. If empty, the name of the file without its suffix."""
    parallel: int = 0
    """Runs at once; 0 is one for each core. They share the cores equally."""
    broker: str = ""
    """With command: learner, the broker of the fleet for all runs, "host:port". If empty, the sweep runs one on
    127.0.0.1:4432."""
    job_template: Path | None = None
    """With command: learner, YAML file of a Job of Kubernetes: each run is a Job like it, no process. savedir must be a
    volume that its pods have at the same path. Cluster and namespace are those of KUBECONFIG, or of the pod."""
    job_owner: str = ""
    """Job of the sweep, "name/uid": Kubernetes deletes those of the runs with it, and after a signal they go on without
    this process, for its successor."""
    stop_status: int = 0
    """Exit status after SIGTERM or SIGHUP. A Job of Kubernetes takes 0 for the end of the sweep, and starts it again
    after another one, such as 143."""
    show: bool = False
    """Show the results so far, and train nothing."""
    progress: Literal["auto", "table", "json", "none"] = "auto"
    """Progress display: auto is a live table on a terminal and JSON lines elsewhere."""

    def __post_init__(self) -> None:
        require_local(self, "file", "savedir")
        require_place("savedir", self.savedir)
        require_at_least(0, self, "parallel")
        require(0 <= self.stop_status <= 255, "stop_status", self.stop_status, "must be from 0 to 255")
        require_local(self, "job_template")
        owner, is_pair = self.job_owner, len([part for part in self.job_owner.split("/") if part]) == 2
        require(not owner or (is_pair and owner.count("/") == 1), "job_owner", owner, 'must be "name/uid"')
        require(not owner or self.job_template is not None, "job_owner", owner, "needs job_template too")
        require(not self.broker or is_host_port(self.broker), "broker", self.broker, 'must be "host:port"')
        is_plain = "/" not in self.name and self.name not in (".", "..", "latest")
        require(is_plain and self.name.isprintable(), "name", self.name, "must be a plain name, it becomes a folder")
