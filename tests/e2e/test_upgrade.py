"""From the chart of the previous release to this one: the run goes on."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.e2e.release import SCENARIOS, Release, check_books

pytestmark = pytest.mark.timeout(900)

PREVIOUS = Path(__file__).parent / "data" / "kubebeast-0.1.0.tgz"
"""`git archive` of deploy/helm/kubebeast as it was then. Its images are today's: what is tested is the chart."""
TOTAL_STEPS = 1_000_000_000
STEPS = 5_000


def values(**config: Any) -> dict[str, Any]:
    """The scenario `minimal`, without an end."""
    values: dict[str, Any] = yaml.safe_load((SCENARIOS / "minimal-values.yaml").read_text(encoding="utf-8"))
    values["learner"]["config"] = {"total_steps": TOTAL_STEPS, "log_interval_s": 1, **config}
    return values


def claims(release: Release) -> set[str]:
    return {item["metadata"]["uid"] for item in release.namespace.get("persistentvolumeclaims")["items"]}


def test_an_upgrade_from_the_previous_chart_keeps_the_run(release: Release) -> None:
    release.install(values(), chart=PREVIOUS)
    trained = release.wait_for_step(STEPS)["kubebeast_learner_step"]
    learner, volumes = release.learner(), claims(release)

    release.install(values(seed=1))  # a changed setting gives the learner a new pod, as a new image does
    release.wait_for_ready_learner(other_than=learner["metadata"]["uid"])

    assert claims(release) == volumes
    resumed = release.wait_for_step(1)["kubebeast_learner_step"]
    assert resumed >= trained
    release.wait_for_streams(2)
    check_books(release.wait_for_step(resumed + STEPS))
