"""A learner as a Job: complete after its last step and only then, and after that the release holds nothing."""

import json
import subprocess
import sys
from typing import Any

import pytest
import yaml

from tests.e2e.cluster import Namespace, eventually, is_ready
from tests.e2e.release import READY_S, SCENARIOS, Release, Values

ENDLESS = 1_000_000_000
STEPS = 3_000
LINGER_S = 5
QUOTA = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "quota"}, "spec": {"hard": {"pods": "20"}}}


def values(**config: Any) -> Values:
    """The scenario `minimal` as a Job, without an end, and with a checkpoint every few seconds."""
    scenario: Values = yaml.safe_load((SCENARIOS / "minimal-values.yaml").read_text(encoding="utf-8"))
    settings = {"total_steps": ENDLESS, "log_interval_s": 1, "checkpoint_interval_minutes": 0.05, **config}
    scenario["learner"] |= {"workload": "job", "job": {"lingerSeconds": LINGER_S}, "config": settings}
    return scenario


class Jobs:
    """The Jobs of the release."""

    def __init__(self, release: Release) -> None:
        self._release, self._namespace = release, release.namespace

    def of(self, component: str) -> list[dict[str, Any]]:
        selector = f"--selector=app.kubernetes.io/component={component}"
        items = self._namespace.get("jobs", selector)["items"]
        return [item for item in items if "deletionTimestamp" not in item["metadata"]]

    def learner(self) -> dict[str, Any]:
        """Returns the only Job of a learner."""
        (job,) = self.of("learner")
        return job

    def end(self) -> str:
        """Returns the condition in which the learner's Job has ended; "" if it goes on."""
        conditions = self.learner()["status"].get("conditions") or []
        return str(next((item["type"] for item in conditions if item["status"] == "True"), ""))

    def training_pod(self, *, other_than: str = "") -> dict[str, Any]:
        """Waits for a ready learner. other_than: uid of a pod that does not count."""

        def look() -> dict[str, Any] | None:
            pods = [pod for pod in self._release.learners() if is_ready(pod) and pod["metadata"]["uid"] != other_than]
            return pods[0] if len(pods) == 1 else None

        return eventually(look, within_s=READY_S, what="a learner that is ready")

    def wait_for_steps(self, pod: dict[str, Any], step: float) -> float:
        """Waits until the learner in the pod has trained up to that step; returns its step."""
        name = pod["metadata"]["name"]

        def look() -> float | None:
            now = self._release.learner_metrics(name)["kubebeast_learner_step"]
            return now if now >= step else None

        return eventually(look, within_s=READY_S, what=f"step {step:g} in {name}")


@pytest.fixture(scope="module")
def jobs(release: Release) -> Jobs:
    release.namespace.kubectl("apply", "--filename=-", stdin=json.dumps(QUOTA))
    return Jobs(release)


def first_step(release: Release, pod: dict[str, Any]) -> int:
    """Returns the step at which the learner in the pod has resumed its run."""
    lines = release.namespace.kubectl("logs", pod["metadata"]["name"]).splitlines()
    (line,) = [line for line in lines if " at step " in line and "resuming" in line]
    return int(line.partition(" at step ")[2].split()[0])


def test_a_stateful_set_becomes_a_job_and_keeps_its_run(jobs: Jobs, release: Release) -> None:
    usual = values()
    usual["learner"]["workload"] = "statefulset"
    release.install(usual)
    pod = jobs.training_pod()
    step = jobs.wait_for_steps(pod, STEPS)
    assert "wait --for=condition=complete" in release.install(values())
    assert first_step(release, jobs.training_pod(other_than=pod["metadata"]["uid"])) >= step
    assert release.namespace.get("statefulsets")["items"] == []


def test_env_servers_are_scaled_during_the_training(jobs: Jobs, release: Release) -> None:
    jobs.wait_for_steps(jobs.training_pod(), STEPS)
    release.namespace.kubectl("scale", f"deployment/{release.name}-envserver", "--replicas=3")
    release.wait_for_streams(3)


def test_a_pod_that_is_drained_is_replaced_and_completes_nothing(jobs: Jobs, release: Release) -> None:
    pod = jobs.training_pod()
    step = jobs.wait_for_steps(pod, STEPS)
    release.namespace.kubectl("delete", "pod", pod["metadata"]["name"])
    successor = jobs.training_pod(other_than=pod["metadata"]["uid"])
    assert first_step(release, successor) >= step
    jobs.wait_for_steps(successor, step + STEPS)
    assert jobs.end() == ""


def test_a_pod_that_is_killed_is_replaced(jobs: Jobs, release: Release) -> None:
    pod = jobs.training_pod()
    release.namespace.kubectl("delete", "pod", pod["metadata"]["name"], "--force", "--grace-period=0")
    successor = jobs.training_pod(other_than=pod["metadata"]["uid"])
    jobs.wait_for_steps(successor, first_step(release, successor) + STEPS)
    assert jobs.end() == ""


def test_a_pause_removes_all_pods_and_the_run_goes_on(jobs: Jobs, release: Release) -> None:
    pod = jobs.training_pod()
    step = jobs.wait_for_steps(pod, STEPS)
    before = jobs.learner()["metadata"]["uid"]
    release.install(values() | {"paused": True})
    eventually(lambda: no_pods(release.namespace), within_s=READY_S, what="no pods")
    assert jobs.learner()["metadata"]["uid"] == before and jobs.end() == ""
    release.install(values())
    assert jobs.learner()["metadata"]["uid"] == before
    resumed = jobs.training_pod()
    assert first_step(release, resumed) >= step
    jobs.wait_for_steps(resumed, step + STEPS)


def test_an_upgrade_of_the_learner_is_another_job_that_goes_on(jobs: Jobs, release: Release) -> None:
    pod = jobs.training_pod()
    name, step = jobs.learner()["metadata"]["name"], jobs.wait_for_steps(pod, STEPS)
    end = int(step) + 20 * STEPS
    release.install(values(total_steps=end))
    eventually(lambda: len(jobs.of("learner")) == 1, within_s=READY_S, what="one Job")
    assert jobs.learner()["metadata"]["name"] != name
    successor = jobs.training_pod(other_than=pod["metadata"]["uid"])
    assert first_step(release, successor) >= step


def test_the_end_frees_everything(jobs: Jobs, release: Release) -> None:
    eventually(jobs.end, within_s=READY_S, what="the end of the Job")
    assert jobs.end() == "Complete"
    eventually(lambda: no_pods(release.namespace), within_s=READY_S, what="no pods")

    def is_quota_free() -> bool:
        return bool(release.namespace.get("resourcequota", "quota")["status"]["used"]["pods"] == "0")

    eventually(is_quota_free, within_s=READY_S, what="a free quota")
    (fleet_end,) = jobs.of("fleet-end")
    assert fleet_end["status"]["succeeded"] == 1
    shown = subprocess.run(
        [sys.executable, "-m", "kubebeast_learner", "fleet", "--namespace", release.namespace.name],
        capture_output=True,
        text=True,
        timeout=READY_S,
        check=True,
    ).stdout
    assert "is complete" in shown


def test_an_upgrade_of_something_else_starts_nothing(jobs: Jobs, release: Release) -> None:
    before = jobs.learner()["metadata"]["uid"]
    ended = values(total_steps=total_steps(release))
    ended["envserverDefaults"]["podAnnotations"] = {"note": "x"}
    release.install(ended)
    assert jobs.learner()["metadata"]["uid"] == before and jobs.end() == "Complete"
    assert no_pods(release.namespace)


def test_a_longer_run_has_its_env_servers_again(jobs: Jobs, release: Release) -> None:
    before = jobs.learner()["metadata"]["name"]
    release.install(values(total_steps=total_steps(release) + 5 * STEPS))
    eventually(lambda: len(jobs.of("learner")) == 1, within_s=READY_S, what="one Job")
    assert jobs.learner()["metadata"]["name"] != before
    eventually(lambda: jobs.end() == "Complete", within_s=READY_S, what="another end")
    eventually(lambda: no_pods(release.namespace), within_s=READY_S, what="no pods")


def total_steps(release: Release) -> int:
    """Returns the setting of the release."""
    set_values = json.loads(release.helm("get", "values", release.name, "--output=json"))
    return int(set_values["learner"]["config"]["total_steps"])


def no_pods(namespace: Namespace) -> bool:
    """Returns True if no pod holds anything: those that are left have ended."""
    phases = [pod["status"]["phase"] for pod in namespace.get("pods")["items"]]
    return all(phase in ("Succeeded", "Failed") for phase in phases)
