"""A HorizontalPodAutoscaler of the chart sizes a real fleet by the learner's demand, and stops at the right size."""

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from harness.certificates import issue, make_ca
from tests.e2e.cluster import Namespace, eventually, run
from tests.e2e.external_metrics import GROUP, METRIC, PORT, VERSION
from tests.e2e.release import READY_S, Release

ADAPTER = "external-metrics"
API_SERVICE = f"{VERSION}.{GROUP}"
READERS = "kubebeast-e2e-external-metrics"
CODE = "code"

MOST = 16
TARGET, TOLERANCE = 1 / (1 - 0.1), 0.1
"""Demand that the chart aims at by default, and the share of it that a HorizontalPodAutoscaler leaves alone."""
SETTLES_WITHIN_S = 240.0
STAYS_LOOKS = 15
"""Consecutive looks, about one per second, that must see the same number and find that it is enough."""
NUM_ENVS, STEP_MS = 4, 50.0
"""An env-server gives at most 20 env-steps a second, 1/6.5 of the paced learner's speed."""
BEHAVIOR = {
    "scaleUp": {"stabilizationWindowSeconds": 45, "policies": [{"type": "Pods", "value": MOST, "periodSeconds": 15}]},
    "scaleDown": {"stabilizationWindowSeconds": 30},
}
"""As short as the 30 s window of the learner's measures allows: the chart's own takes minutes."""


def values() -> dict[str, Any]:
    code = {
        "extraEnv": [{"name": "PYTHONPATH", "value": f"/{CODE}"}],
        "extraVolumes": [{"name": CODE, "configMap": {"name": CODE}}],
        "extraVolumeMounts": [{"name": CODE, "mountPath": f"/{CODE}", "readOnly": True}],
    }
    small_updates = {"unroll_length": 5, "batch_size": 4, "loss": "paced_loss:paced_loss"}
    hpa = {"minReplicas": 1, "maxReplicas": MOST, "behavior": BEHAVIOR, "hpa": {"enabled": True}}
    return {
        "learner": {
            "recipe": "Catch",
            "config": {**small_updates, "total_steps": 1_000_000_000, "log_interval_s": 1},
            "resources": {"requests": {"cpu": "100m", "memory": "512Mi"}},
            "persistence": {"enabled": False},
            **code,
        },
        "envserverDefaults": {
            "resources": {"requests": {"cpu": "50m", "memory": "128Mi"}},
            "envsPerStream": NUM_ENVS,
            "kwargs": {"step_ms": STEP_MS},
            "autoscaling": hpa,
            **code,
        },
        "envservers": {"envserver": {"env": "environments:Paced-v0"}},
    }


@pytest.fixture(scope="module", autouse=True)
def _nobody_serves_external_metrics() -> None:
    if "apiregistration.k8s.io/v1" not in run("kubectl", "api-versions").split():
        pytest.skip("the cluster has no API of APIServices, by which a test could serve a metric")
    if API_SERVICE in run("kubectl", "get", "apiservices", "--output=name"):
        pytest.skip(f"the cluster has an APIService {API_SERVICE} already, which the test would replace")


@pytest.fixture(scope="module")
def autoscaled(release: Release, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Release]:
    """A release that begins with one env-server, and an adapter that reports its learner's demand to Kubernetes."""
    here = Path(__file__).parent
    files = (f"--from-file={here / name}" for name in ("environments.py", "paced_loss.py", "external_metrics.py"))
    release.namespace.kubectl("create", "configmap", CODE, *files)
    release.install(values())
    try:
        serve_demand(release, tmp_path_factory.mktemp("certificates"))
        yield release
    finally:
        for item in (f"apiservice/{API_SERVICE}", f"clusterrolebinding/{READERS}", f"clusterrole/{READERS}"):
            run("kubectl", "delete", item, "--ignore-not-found")


def serve_demand(release: Release, folder: Path) -> None:
    """Runs the adapter in the learner's image and registers it; waits until Kubernetes reaches it."""
    namespace = release.namespace
    pair = issue(make_ca(folder), folder, ADAPTER, f"{ADAPTER}.{namespace.name}.svc")
    namespace.kubectl("create", "secret", "tls", ADAPTER, f"--cert={pair.cert}", f"--key={pair.key}")
    image = release.learner()["spec"]["containers"][0]["image"]
    items = [*adapter(namespace, image, f"http://{release.name}-learner:9090"), *readers()]
    run("kubectl", "apply", "--filename=-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    eventually(lambda: demand(release), within_s=READY_S, what="a demand that Kubernetes can read")


def adapter(namespace: Namespace, image: str, learner: str) -> list[dict[str, Any]]:
    meta = {"name": ADAPTER, "namespace": namespace.name, "labels": {"app": ADAPTER}}
    folders = {CODE: {"configMap": {"name": CODE}}, "certificate": {"secret": {"secretName": ADAPTER}}}
    program = ("python", f"/{CODE}/external_metrics.py", namespace.name, learner)
    container = {
        "name": ADAPTER,
        "image": image,
        "command": [*program, "/certificate/tls.crt", "/certificate/tls.key"],
        "volumeMounts": [{"name": name, "mountPath": f"/{name}"} for name in folders],
        "readinessProbe": {"tcpSocket": {"port": PORT}, "periodSeconds": 1},
    }
    volumes = [{"name": name, **source} for name, source in folders.items()]
    service = {"namespace": namespace.name, "name": ADAPTER}
    registered = {"group": GROUP, "version": VERSION, "service": service, "insecureSkipTLSVerify": True}
    priorities = {"groupPriorityMinimum": 100, "versionPriority": 100}
    port = {"port": 443, "targetPort": PORT, "protocol": "TCP"}
    return [
        {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"containers": [container], "volumes": volumes}},
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": meta,
            "spec": {"selector": meta["labels"], "ports": [port]},
        },
        {
            "apiVersion": "apiregistration.k8s.io/v1",
            "kind": "APIService",
            "metadata": {"name": API_SERVICE},
            "spec": registered | priorities,
        },
    ]


def readers() -> list[dict[str, Any]]:
    """Returns the roles that let Kubernetes' autoscalers read external metrics, which every adapter needs."""
    rbac = "rbac.authorization.k8s.io"
    autoscalers = {"kind": "ServiceAccount", "name": "horizontal-pod-autoscaler", "namespace": "kube-system"}
    meta = {"apiVersion": f"{rbac}/v1", "metadata": {"name": READERS}}
    rule = {"apiGroups": [GROUP], "resources": ["*"], "verbs": ["get", "list"]}
    role = {"apiGroup": rbac, "kind": "ClusterRole", "name": READERS}
    return [
        {"kind": "ClusterRole", "rules": [rule], **meta},
        {"kind": "ClusterRoleBinding", "roleRef": role, "subjects": [autoscalers], **meta},
    ]


class Look(NamedTuple):
    wanted: int
    """Number of env-servers, by the autoscaler."""
    demand: float


def demand(release: Release) -> float:
    """Returns the demand ratio, as Kubernetes reads it."""
    path = f"/apis/{GROUP}/{VERSION}/namespaces/{release.namespace.name}/{METRIC}"
    (item,) = json.loads(run("kubectl", "get", "--raw", path))["items"]
    return int(item["value"].removesuffix("m")) / 1000


def look_at(release: Release) -> Look:
    hpa = release.namespace.get("horizontalpodautoscaler", f"{release.name}-envserver")
    return Look(int(hpa["status"].get("desiredReplicas", 0)), demand(release))


def is_enough(look: Look) -> bool:
    """Returns True if an autoscaler would keep the size: the demand is as near its target as whole env-servers come."""
    ratio = look.demand / TARGET
    return abs(ratio - 1) <= TOLERANCE or math.ceil(look.wanted * ratio) == look.wanted


def test_a_fleet_grows_to_what_the_learner_can_use_and_stays(autoscaled: Release) -> None:
    seen: list[Look] = []

    def settled() -> int | None:
        """Returns the number that all of the last looks saw and found enough, once it has grown."""
        seen.append(look_at(autoscaled))
        last = seen[-STAYS_LOOKS:]
        stays = len(last) == STAYS_LOOKS and len({look.wanted for look in last}) == 1
        return last[0].wanted if stays and last[0].wanted > 1 and all(map(is_enough, last)) else None

    try:
        replicas = eventually(settled, within_s=SETTLES_WITHIN_S, what="a fleet that has grown and stays")
    finally:
        print("what the autoscaler wanted, with the demand:", *seen, sep="\n")

    assert replicas < MOST
    autoscaled.wait_for_streams(replicas)
