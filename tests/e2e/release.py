"""A release of the chart, and the metrics of its pods."""

import json
import os
import time
from pathlib import Path
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from tests.e2e.cluster import Namespace, eventually, is_ready, run

ROOT = Path(__file__).resolve().parents[2]
CHART = Path(os.environ.get("E2E_CHART", ROOT / "deploy" / "helm" / "kubebeast"))
"""A folder, or a packaged chart."""
SCENARIOS = ROOT / "deploy" / "helm" / "kubebeast" / "ci"
READY_S = 240.0

Metrics = dict[str, float]
Values = dict[str, Any]
OUTCOMES = ("delivered", "dropped_partial", "dropped_stale", "dropped_close")


def image_values() -> Values:
    """Returns the images: E2E_REGISTRY, by default localhost, and E2E_TAG, by default the chart's own."""
    tag = os.environ.get("E2E_TAG", "")
    return {
        "image": {"registry": os.environ.get("E2E_REGISTRY", "localhost")},
        "learner": {"image": {"tag": tag}},
        "envserverDefaults": {"image": {"tag": tag}},
    }


class Release:
    """One release in a namespace of its own."""

    def __init__(self, namespace: Namespace, folder: Path, name: str = "e2e") -> None:
        """folder: for files of values."""
        self.namespace = namespace
        self.name = name
        self._folder = folder

    def helm(self, *arguments: str) -> str:
        return run("helm", "--namespace", self.namespace.name, *arguments)

    def install(self, values: Values, *flags: str, chart: Path = CHART) -> str:
        """Installs or upgrades and waits until everything is ready; returns helm's output."""
        path = self._folder / "values.yaml"
        path.write_text(json.dumps(values), encoding="utf-8")
        images = self._folder / "images.yaml"
        images.write_text(json.dumps(image_values()), encoding="utf-8")
        wait = ("--wait", f"--timeout={READY_S:.0f}s")
        files = (f"--values={path}", f"--values={images}")
        return self.helm("upgrade", "--install", self.name, str(chart), *wait, *flags, *files)

    def play_test_stream(self) -> None:
        """Runs `helm test`; if it fails, the error holds the pod's log."""
        self.helm("test", self.name, "--logs", f"--timeout={READY_S:.0f}s")

    def uninstall(self) -> None:
        self.helm("uninstall", self.name, "--wait", f"--timeout={READY_S:.0f}s")

    def learner(self) -> dict[str, Any]:
        """Returns the pod of the only learner."""
        (pod,) = self.learners()
        return pod

    def learners(self) -> list[dict[str, Any]]:
        return self.namespace.pods(instance=self.name, component="learner")

    def envservers(self, group: str = "envserver") -> list[dict[str, Any]]:
        return self.namespace.pods(instance=self.name, component="envserver", group=group)

    def metrics(self) -> Metrics:
        """Returns the samples of the only learner, by name and label values: "kubebeast_steps_total/sampled"."""
        return self.learner_metrics(self.learner()["metadata"]["name"])

    def learner_metrics(self, pod: str) -> Metrics:
        """Returns the samples of a pod as `metrics` does, without the label of the rank."""
        return _samples(self.namespace.raw(pod, 9090, "/metrics"))

    def envserver_metrics(self, pod: str) -> Metrics:
        return _samples(self.namespace.raw(pod, 9091, "/metrics"))

    def wait_for_streams(self, count: int, *, within_s: float = READY_S) -> Metrics:
        """Waits until the learner has `count` streams."""

        def look() -> Metrics | None:
            metrics = self.metrics()
            return metrics if metrics["kubebeast_streams"] == count else None

        return eventually(look, within_s=within_s, what=f"{count} streams")

    def wait_for_step(self, step: float, *, within_s: float = READY_S) -> Metrics:
        """Waits until the learner has trained up to that step."""

        def look() -> Metrics | None:
            metrics = self.metrics()
            return metrics if metrics["kubebeast_learner_step"] >= step else None

        return eventually(look, within_s=within_s, what=f"step {step:g}")

    def wait_for_ready_learner(self, *, other_than: str = "") -> dict[str, Any]:
        """Waits for the learner's pod to be ready. other_than: uid of a pod that does not count."""

        def look() -> dict[str, Any] | None:
            pod = self.learner()
            return pod if is_ready(pod) and pod["metadata"]["uid"] != other_than else None

        return eventually(look, within_s=READY_S, what="a learner that is ready")

    def sampled_per_second(self, window_s: float) -> float:
        """Returns the env-steps of all environments per second, over a window of time."""
        before, since = self.metrics()["kubebeast_steps_total/sampled"], time.monotonic()
        time.sleep(window_s)
        after, now = self.metrics()["kubebeast_steps_total/sampled"], time.monotonic()
        return (after - before) / (now - since)


def check_books(metrics: Metrics) -> None:
    """Asserts that every sampled step is delivered, dropped for a reason, or in flight."""
    told = sum(metrics[f"kubebeast_steps_total/{outcome}"] for outcome in OUTCOMES)
    assert metrics["kubebeast_steps_total/sampled"] == told + metrics["kubebeast_steps_in_flight"]


def _samples(text: str) -> Metrics:
    return {
        "/".join([sample.name, *(value for label, value in sample.labels.items() if label != "rank")]): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
