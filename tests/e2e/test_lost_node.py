"""If the node of the learner is cut off, the run continues on another one, and the old process changes nothing."""

import os
import re
import subprocess
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from harness.processes.s3_server import BUCKET, S3Server
from kubebeast_learner.run.checkpoint_file import load
from kubebeast_runs.bucket.objects import Bucket
from kubebeast_runs.bucket.run_files import RunFiles
from kubebeast_runs.checkpoints import list_checkpoints
from tests.e2e.cluster import Namespace, eventually, run
from tests.e2e.release import READY_S, Release
from tests.e2e.s3 import SECRET, Request, forward_s3, requests_of, start_s3

CUT_OFF = os.environ.get("E2E_CUT_OFF", "").split()
"""A program that cuts a node off, and the name of the node: it is called with a further argument, on or off."""
URL = f"s3://{BUCKET}/runs"
INTERVAL_S = 10.0
"""Time between checkpoints."""
ELSEWHERE_S = 120.0
"""Longest time from the deletion of the Node object to a step of the new learner."""
BOUND_S = 60.0
"""Longest time from the binding of the new pod to a step."""
RETURN_S = 120.0
"""Longest time to the first request of the old learner after its node is connected again."""

pytestmark = pytest.mark.skipif(len(CUT_OFF) != 2, reason="E2E_CUT_OFF has no program and node")


def values(node: str) -> dict[str, Any]:
    """Returns a learner that starts on `node` if it can, and env-servers that stay on the others."""
    terms = [{"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "NotIn", "values": [node]}]}]
    preferred = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]}
    elsewhere = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    there = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "preference": preferred}]}
    config = {"total_steps": 1_000_000_000, "checkpoint_interval_minutes": INTERVAL_S / 60, "log_interval_s": 1}
    return {
        "learner": {
            "recipe": "Catch",
            "config": config,
            "resources": {"requests": {"cpu": "100m", "memory": "512Mi"}},
            "storage": {"url": URL, "existingSecret": SECRET},
            "affinity": {"nodeAffinity": there},
        },
        "envserverDefaults": {
            "replicas": 2,
            "envsPerStream": 4,
            "resources": {"requests": {"cpu": "50m", "memory": "128Mi"}},
            "affinity": {"nodeAffinity": elsewhere},
        },
        "envservers": {"envserver": {"env": "kubebeast_envserver.catch:Catch-v0"}},
    }


@pytest.fixture
def node() -> str:
    return CUT_OFF[1]


@pytest.fixture
def s3(namespace: Namespace, node: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Server]:
    (other, *_) = [
        each["metadata"]["name"] for each in namespace.get("nodes")["items"] if each["metadata"]["name"] != node
    ]
    start_s3(namespace, other)
    with forward_s3(namespace) as server:
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        yield server


def switch(state: str) -> None:
    subprocess.run([*CUT_OFF, state], check=True)


def is_node_ready(node: dict[str, Any]) -> bool:
    return any(each["type"] == "Ready" and each["status"] == "True" for each in node["status"]["conditions"])


def bound_at(pod: dict[str, Any]) -> datetime:
    """Returns the time at which the pod was given a node."""
    (scheduled,) = (each for each in pod["status"]["conditions"] if each["type"] == "PodScheduled")
    return datetime.fromisoformat(scheduled["lastTransitionTime"])


def resumed_step(release: Release) -> int:
    """Returns the step of the checkpoint from which the learner has resumed."""
    (found,) = re.findall(r"resuming \S+ at step (\d+)", release.namespace.kubectl("logs", f"{release.name}-learner-0"))
    return int(found)


def test_a_learner_that_is_cut_off_goes_on_elsewhere_and_changes_nothing(
    s3: S3Server, release: Release, node: str
) -> None:
    release.install(values(node))
    release.wait_for_streams(2)
    files = RunFiles(Bucket(URL), release.name)
    first = eventually(lambda: list_checkpoints(files), within_s=READY_S, what="a checkpoint")[0].step
    release.wait_for_step(first + 1)
    old = release.learner()
    assert old["spec"]["nodeName"] == node
    step, saved = release.metrics()["kubebeast_learner_step"], list_checkpoints(files)[0].step

    switch("on")
    try:
        eventually(lambda: not is_node_ready(release.namespace.get("node", node)), within_s=READY_S, what="a lost node")
        run("kubectl", "delete", "node", node)
        deleted_at = time.monotonic()
        new = release.wait_for_ready_learner(other_than=old["metadata"]["uid"])
        trained = release.wait_for_step(step + 1)["kubebeast_learner_step"]
        elsewhere_s = time.monotonic() - deleted_at
        start_s = (datetime.now(UTC) - bound_at(new)).total_seconds()
    finally:
        connected_at = datetime.now(UTC)
        switch("off")

    resumed = resumed_step(release)
    print(f"trains {elsewhere_s:.0f} s after the deletion, {start_s:.0f} s after binding; step {step:.0f} -> {resumed}")
    assert elsewhere_s <= ELSEWHERE_S and start_s <= BOUND_S
    assert new["spec"]["nodeName"] != node
    assert resumed >= saved
    assert not release.namespace.get("persistentvolumeclaims")["items"]

    client = old["status"]["podIP"]
    since = connected_at.isoformat()

    def requests() -> list[Request]:
        return [request for request in requests_of(release.namespace, since) if request.client == client]

    eventually(requests, within_s=RETURN_S, what="a request of the old learner")
    release.wait_for_step(trained + 1000)
    assert not [request for request in requests() if request.is_change]
    newest = list_checkpoints(files)[0]
    assert load(files, newest.file.name)["step"] == newest.step > resumed
    assert release.learner()["metadata"]["uid"] == new["metadata"]["uid"]
