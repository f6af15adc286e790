"""A run continues after an upgrade from the charts of previous releases to this one."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.e2e.cluster import Namespace
from tests.e2e.release import SCENARIOS, Release, check_books

DATA = Path(__file__).parent / "data"
"""kubebeast-VERSION.tgz is `git archive` of deploy/helm/kubebeast of that version. The images are the present ones: the
tests are about the chart.
"""
TOTAL_STEPS = 1_000_000_000
STEPS = 5_000


def values(**config: Any) -> dict[str, Any]:
    """The scenario `minimal`, without an end."""
    values: dict[str, Any] = yaml.safe_load((SCENARIOS / "minimal-values.yaml").read_text(encoding="utf-8"))
    values["learner"]["config"] = {"total_steps": TOTAL_STEPS, "log_interval_s": 1, **config}
    return values


def claims(release: Release) -> set[str]:
    return {item["metadata"]["uid"] for item in release.namespace.get("persistentvolumeclaims")["items"]}


def selectors(release: Release) -> dict[str, Any]:
    items = release.namespace.get("statefulsets,deployments")["items"]
    return {item["metadata"]["name"]: item["spec"]["selector"]["matchLabels"] for item in items}


@pytest.mark.parametrize(
    ("version", "names"),
    [("0.1.0", {}), ("0.2.0", {}), ("0.2.0", {"nameOverride": "red"})],
    ids=["0.1.0", "0.2.0", "0.2.0-named"],
)
def test_an_upgrade_from_a_previous_chart_keeps_the_run(
    version: str, names: dict[str, str], namespace: Namespace, tmp_path: Path
) -> None:
    release = Release(namespace, tmp_path, f"e2e-{version.replace('.', '-')}{'-named' if names else ''}")
    try:
        release.install(values() | names, chart=DATA / f"kubebeast-{version}.tgz")
        trained = release.wait_for_step(STEPS)["kubebeast_learner_step"]
        learner, volumes, selected = release.learner(), claims(release), selectors(release)

        release.install(values(seed=1) | names)  # a changed setting gives the learner a new pod, as a new image does
        release.wait_for_ready_learner(other_than=learner["metadata"]["uid"])

        assert claims(release) == volumes
        assert selectors(release) == selected
        resumed = release.wait_for_step(1)["kubebeast_learner_step"]
        assert resumed >= trained
        release.wait_for_streams(2)
        check_books(release.wait_for_step(resumed + STEPS))
        release.play_test_stream()
    finally:
        release.uninstall()
