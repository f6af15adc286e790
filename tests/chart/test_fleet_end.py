"""The env-servers of a Job end with it: a pod waits for that, and may do nothing else."""

import json
import signal
import subprocess
import sys
import threading
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from tests.chart.chart import CHART, Manifests, Object, container, render
from tests.http_server import StatefulServer, serving

TIMEOUT_S = 60
JOB = {
    "learner": {"workload": "job"},
    "envservers": {"a": {"env": "x"}, "b": {"env": "x", "fullnameOverride": "other"}},
}
WORKLOAD, DEPLOYMENTS = "/apis/batch/v1/namespaces/train/jobs/pong", "/apis/apps/v1/namespaces/train/deployments"


def of_fleet_end(manifests: Manifests, kind: str) -> list[Object]:
    items = manifests.of_kind(kind)
    return [item for item in items if item["metadata"]["labels"].get("app.kubernetes.io/component") == "fleet-end"]


def test_its_account_should_read_one_job_and_scale_the_groups_and_do_nothing_else() -> None:
    manifests = render(JOB)
    (job,) = [item for item in manifests.of_kind("Job") if item not in of_fleet_end(manifests, "Job")]
    assert manifests.get("Role")["rules"] == [
        {"apiGroups": ["batch"], "resources": ["jobs"], "resourceNames": [job["metadata"]["name"]], "verbs": ["get"]},
        {
            "apiGroups": ["apps"],
            "resources": ["deployments/scale"],
            "resourceNames": ["demo-a", "other"],
            "verbs": ["patch"],
        },
    ]
    binding = manifests.get("RoleBinding")
    (account,) = of_fleet_end(manifests, "ServiceAccount")
    assert [item["name"] for item in binding["subjects"]] == [account["metadata"]["name"]]
    users = {
        name
        for name, pod in manifests.pod_templates().items()
        if any("serviceAccountToken" in str(volume) for volume in pod["spec"]["volumes"])
    }
    assert users == {f"Job/{of_fleet_end(manifests, 'Job')[0]['metadata']['name']}"}


def test_it_should_wait_for_the_job_of_this_release() -> None:
    manifests = render(JOB)
    (end,) = of_fleet_end(manifests, "Job")
    (job,) = [item["metadata"]["name"] for item in manifests.of_kind("Job") if item is not end]
    command = container(end["spec"]["template"])["command"]
    assert f"--workload=/apis/batch/v1/namespaces/training/jobs/{job}" in command
    assert command[-2:] == ["demo-a", "other"]
    (program,) = of_fleet_end(manifests, "ConfigMap")
    assert program["data"]["end_fleet.py"].strip() == (CHART / "files" / "end_fleet.py").read_text().strip()


def test_it_should_run_where_env_servers_run_in_their_image() -> None:
    spot: dict[str, Any] = {"nodeSelector": {"pool": "spot"}, "tolerations": [{"key": "spot", "operator": "Exists"}]}
    image = {"repository": "mine", "tag": "1"}
    (end,) = of_fleet_end(render(JOB | {"envserverDefaults": {**spot, "image": image}}), "Job")
    spec = end["spec"]["template"]["spec"]
    assert spec["nodeSelector"]["pool"] == "spot" and spot["tolerations"][0] in spec["tolerations"]
    assert spec["containers"][0]["image"].endswith("/mine:1")
    assert end["spec"]["backoffLimit"] == 2**31 - 1, "it may be drained any number of times"
    own = {"workload": "job", "job": {"fleetEnd": {"image": {"repository": "python", "tag": "3"}}}}
    (end,) = of_fleet_end(render(JOB | {"learner": own}), "Job")
    assert end["spec"]["template"]["spec"]["containers"][0]["image"].endswith("/python:3")


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"paused": True, "learner": {"workload": "job"}},
        {"learner": {"workload": "job", "job": {"fleetEnd": {"enabled": False}}}},
        {"learner": {"workload": "job"}, "envserverDefaults": {"enabled": False}},
    ],
)
def test_there_should_be_none_without_need(values: dict[str, Any]) -> None:
    manifests = render(values)
    for kind in ("Job", "Role", "RoleBinding", "ServiceAccount", "ConfigMap"):
        assert not of_fleet_end(manifests, kind)


@dataclass
class Api:
    """The workload and the scaled Deployments of an API server."""

    address: str
    conditions: list[dict[str, str]] = field(default_factory=list)
    metadata: dict[str, str] = field(default_factory=dict)
    scaled: list[tuple[str, Any]] = field(default_factory=list)
    failures: list[int] = field(default_factory=list)
    """Statuses of the next answers."""
    stopped: threading.Event = field(default_factory=threading.Event)
    asked: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))


class _Handler(BaseHTTPRequestHandler):
    server: StatefulServer[Api]

    def do_GET(self) -> None:
        api = self.server.state
        self._answer(self.path == WORKLOAD, {"metadata": api.metadata, "status": {"conditions": api.conditions}})
        api.asked.release()

    def do_PATCH(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        found = self.headers["Content-Type"] == "application/merge-patch+json" and "/gone/" not in self.path
        if self._answer(found, {}):
            self.server.state.scaled.append((self.path, body))

    def _answer(self, is_found: bool, content: Any) -> bool:
        failures = self.server.state.failures
        status = failures.pop(0) if failures else 200 if is_found else 404
        if self.headers["Authorization"] != "Bearer valid":
            status = 401
        self.send_response(status)
        self.end_headers()
        self.wfile.write(json.dumps(content).encode())
        return status == 200

    def log_message(self, format: str, *args: Any) -> None:
        pass


def api_server() -> AbstractContextManager[Api]:
    return serving(_Handler, Api)


def start(api: Api, folder: Path, *names: str) -> subprocess.Popen[str]:
    (folder / "token").write_text("valid\n")
    words = [f"--workload={WORKLOAD}", f"--deployments={DEPLOYMENTS}", f"--server={api.address}", f"--account={folder}"]
    program = [sys.executable, str(CHART / "files" / "end_fleet.py")]
    return subprocess.Popen([*program, *words, "--look-every-s=0.01", *names], stdout=subprocess.PIPE, text=True)


@pytest.mark.parametrize("end", ["Complete", "Completed", "Failed"])
def test_every_group_should_be_scaled_to_zero_at_the_end(end: str, tmp_path: Path) -> None:
    with api_server() as api, start(api, tmp_path, "a", "gone", "b") as process:
        for _ in range(3):
            assert api.asked.acquire(timeout=TIMEOUT_S)
        assert api.scaled == []
        api.conditions = [{"type": "Suspended", "status": "True"}, {"type": end, "status": "True"}]
        assert process.wait(TIMEOUT_S) == 0
        none = {"spec": {"replicas": 0}}
        assert api.scaled == [(f"{DEPLOYMENTS}/a/scale", none), (f"{DEPLOYMENTS}/b/scale", none)]


def test_a_job_that_is_replaced_should_not_be_taken_for_an_end(tmp_path: Path) -> None:
    with api_server() as api, start(api, tmp_path, "a") as process:
        api.metadata = {"deletionTimestamp": "2030-01-01T00:00:00Z"}
        api.conditions = [{"type": "Failed", "status": "True"}]
        for _ in range(3):
            assert api.asked.acquire(timeout=TIMEOUT_S)
        process.send_signal(signal.SIGTERM)
        assert process.wait(TIMEOUT_S) == 143, "the pod failed: another one takes its place"
        assert api.scaled == []


def test_failed_requests_should_be_repeated(tmp_path: Path) -> None:
    with api_server() as api:
        api.failures, api.conditions = [503, 403, 200, 500], [{"type": "Complete", "status": "True"}]
        with start(api, tmp_path, "a") as process:
            assert process.stdout is not None
            output = process.stdout.read()
            assert process.wait(TIMEOUT_S) == 0
        assert [path for path, _ in api.scaled] == [f"{DEPLOYMENTS}/a/scale"]
        assert [code for code in ("503", "403", "500") if f"HTTP Error {code}" in output] == ["503", "403", "500"]
