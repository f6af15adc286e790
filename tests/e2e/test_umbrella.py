"""With the chart twice in one release, each learner has its own env-servers, also after an upgrade from 0.2.0."""

import json
import tarfile
from pathlib import Path
from typing import Any

import yaml

from tests.chart.umbrella import NAME, umbrella
from tests.e2e.cluster import Namespace, eventually, is_ready
from tests.e2e.release import CHART, READY_S, SCENARIOS, Release, image_values

PREVIOUS = Path(__file__).parent / "data" / "kubebeast-0.2.0.tgz"
FLEETS = {"red": 1, "blue": 2}
"""Env-servers by alias."""
STEPS = 2_000


def values() -> dict[str, Any]:
    base: dict[str, Any] = yaml.safe_load((SCENARIOS / "minimal-values.yaml").read_text(encoding="utf-8"))
    images = image_values()
    return {
        alias: base
        | {
            "nameOverride": alias,
            "image": images["image"],
            "learner": base["learner"] | images["learner"] | {"config": {"total_steps": 10**9, "log_interval_s": 1}},
            "envserverDefaults": base["envserverDefaults"] | images["envserverDefaults"] | {"replicas": replicas},
        }
        for alias, replicas in FLEETS.items()
    }


def install(release: Release, folder: Path) -> None:
    path = folder.with_suffix(".values.json")
    path.write_text(json.dumps(values()), encoding="utf-8")
    wait = ("--wait", f"--timeout={READY_S:.0f}s")
    release.helm("upgrade", "--install", release.name, str(folder), *wait, f"--values={path}")


def learners_metrics(release: Release, alias: str) -> dict[str, float]:
    return release.learner_metrics(f"{NAME}-{alias}-learner-0")


def unpacked(archive: Path, folder: Path) -> Path:
    with tarfile.open(archive) as file:
        file.extractall(folder, filter="data")
    return folder / "kubebeast"


def test_each_learner_keeps_its_run_and_gets_its_own_env_servers(namespace: Namespace, tmp_path: Path) -> None:
    release = Release(namespace, tmp_path, NAME)
    previous = umbrella(tmp_path / "previous", {alias: {} for alias in FLEETS}, unpacked(PREVIOUS, tmp_path))
    chart = unpacked(CHART, tmp_path / "now") if CHART.is_file() else CHART
    try:
        install(release, previous)
        trained = _first_steps(release)
        claims = {item["metadata"]["uid"] for item in namespace.get("persistentvolumeclaims")["items"]}

        install(release, umbrella(tmp_path / "umbrella", {alias: {} for alias in FLEETS}, chart))

        assert {item["metadata"]["uid"] for item in namespace.get("persistentvolumeclaims")["items"]} == claims
        for alias, count in FLEETS.items():
            assert all(map(is_ready, namespace.pods(fullname=f"{NAME}-{alias}", component="envserver")))
            _wait_for_streams(release, alias, count)
            assert learners_metrics(release, alias)["kubebeast_learner_step"] >= trained[alias]
    finally:
        release.uninstall()


def _wait_for_streams(release: Release, alias: str, count: int) -> None:
    """Waits until the learner has `count` streams, and has trained on their steps."""

    def look() -> bool:
        metrics = learners_metrics(release, alias)
        return metrics["kubebeast_streams"] == count and metrics["kubebeast_learner_step"] > STEPS

    eventually(look, within_s=READY_S, what=f"{count} streams of {alias}")


def _first_steps(release: Release) -> dict[str, float]:
    """Returns the steps of each learner once there are any: of two fleets in one, a learner may get no env-server."""

    def look() -> dict[str, float] | None:
        steps = {alias: learners_metrics(release, alias).get("kubebeast_learner_step", 0.0) for alias in FLEETS}
        return steps if any(steps.values()) else None

    return eventually(look, within_s=READY_S, what="steps of a learner")
