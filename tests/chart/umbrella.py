"""An umbrella chart that has this one as its dependencies."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from tests.chart.chart import APIS, CHART, KUBE_VERSION, NAMESPACE, REGISTRY, Manifests, helm

NAME = "games"
VERSION = str(yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))["version"])


def umbrella(folder: Path, dependencies: Mapping[str, Mapping[str, Any]], chart: Path = CHART) -> Path:
    """Writes the chart into `folder`. dependencies: further keys of Chart.yaml, by alias, or by "kubebeast" without
    one.
    """
    (folder / "charts").mkdir(parents=True)
    shutil.copytree(chart, folder / "charts" / "kubebeast")
    listed = [
        {"name": "kubebeast", "version": VERSION, **({} if alias == "kubebeast" else {"alias": alias}), **more}
        for alias, more in dependencies.items()
    ]
    content = {"apiVersion": "v2", "name": NAME, "version": "0.1.0", "dependencies": listed}
    (folder / "Chart.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")
    return folder


def render_umbrella(folder: Path, values: Mapping[str, Any]) -> Manifests:
    """Runs `helm template` on the folder, as the release NAME."""
    wanted = {"global": {"imageRegistry": REGISTRY}, **values}
    command = ["template", NAME, str(folder), "--namespace", NAMESPACE, "--kube-version", KUBE_VERSION]
    text = helm([*command, "--api-versions", ",".join(APIS), "--values", "-"], json.dumps(wanted))
    return Manifests(tuple(item for item in yaml.safe_load_all(text) if item))
