"""The chart's smallest scenario installs, learns, keeps its checkpoints, and stays when it is finished."""

import json
import subprocess
import sys
from typing import Any

import pytest
import yaml

from tests.e2e.cluster import Namespace, eventually, is_ready, num_restarts
from tests.e2e.release import READY_S, SCENARIOS, Release

TOTAL_STEPS = 40_000
LEARNT = 0.0
"""Better than chance, which returns about -0.6. Trainings reach it after some 7 600 steps; 40 000 are eight standard
deviations of the logarithm more.
"""
LEARNS_WITHIN_S = 300.0


@pytest.fixture(scope="module")
def learning(release: Release) -> Release:
    """The scenario `minimal`, which trains Catch, to its end."""
    values = yaml.safe_load((SCENARIOS / "minimal-values.yaml").read_text(encoding="utf-8"))
    values["learner"]["config"] = {"total_steps": TOTAL_STEPS, "log_interval_s": 1}
    notes = release.install(values)
    assert f"kubectl -n {release.namespace.name} scale deployment/{release.name}-envserver --replicas=" in notes
    return release


def fleet(namespace: Namespace, *arguments: str) -> str:
    command = [sys.executable, "-m", "kubebeast_learner", "fleet", *arguments, "--namespace", namespace.name]
    return subprocess.run(command, capture_output=True, text=True, timeout=READY_S, check=True).stdout


def test_it_learns_and_stays_when_it_is_finished(learning: Release) -> None:
    metrics = learning.wait_for_step(TOTAL_STEPS, within_s=LEARNS_WITHIN_S)

    assert metrics["kubebeast_episode_return_mean"] >= LEARNT
    eventually(
        lambda: "waiting for SIGTERM" in learning.namespace.kubectl("logs", _name(learning)),
        within_s=READY_S,
        what="a run that says it is finished",
    )
    assert is_ready(learning.learner())
    assert num_restarts(learning.learner()) == 0


def test_helm_test_knows_a_finished_run_from_a_broken_one(learning: Release) -> None:
    learning.play_test_stream()


def test_checkpoints_are_on_the_volume(learning: Release) -> None:
    files = learning.namespace.kubectl("exec", _name(learning), "--", "ls", f"/runs/{learning.name}").split()
    (claim,) = learning.namespace.get("persistentvolumeclaims")["items"]

    assert {"config.yaml", "logs.csv", "out.log", "weights.safetensors"} <= set(files)
    assert any(name.startswith("checkpoint-") for name in files)
    assert claim["status"]["phase"] == "Bound"


def test_processes_are_restricted(learning: Release) -> None:
    pods = [learning.learner(), *learning.envservers()]
    for pod in pods:
        name = pod["metadata"]["name"]
        assert learning.namespace.kubectl("exec", name, "--", "id", "-u").strip() == "10001"
        refused = ("sh", "-c", "touch /opt/here 2>&1 || true")
        assert "Read-only file system" in learning.namespace.kubectl("exec", name, "--", *refused)
        capabilities = learning.namespace.kubectl("exec", name, "--", "grep", "CapEff", "/proc/self/status")
        assert int(capabilities.split()[1], 16) == 0
        token = ("sh", "-c", "ls /var/run/secrets/kubernetes.io 2>&1 || true")
        assert "No such file" in learning.namespace.kubectl("exec", name, "--", *token)


def test_the_fleet_is_shown_and_scaled_by_kubebeast_fleet(learning: Release) -> None:
    fleet(learning.namespace, "scale", "envserver", "3")

    def all_ready() -> bool:
        pods = learning.envservers()
        return len(pods) == 3 and all(is_ready(pod) for pod in pods)

    eventually(all_ready, within_s=READY_S, what="three env-servers, ready although the run is finished")
    shown: dict[str, Any] = json.loads(fleet(learning.namespace, "--json"))

    assert "envserver" in json.dumps(shown)
    names = {pod["metadata"]["name"] for pod in learning.envservers()}
    assert all(name in json.dumps(shown) for name in names)


def _name(release: Release) -> str:
    name: str = release.learner()["metadata"]["name"]
    return name
