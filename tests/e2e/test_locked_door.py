"""With mutual TLS, a token and network policies, only the release's own env-servers are admitted."""

from pathlib import Path
from typing import Any

import pytest

from harness.certificates import issue, make_ca
from tests.e2e.cluster import eventually
from tests.e2e.release import READY_S, Release

TOKEN = "a-token-of-these-tests"
SMALL = {"requests": {"cpu": "50m", "memory": "128Mi"}}


@pytest.fixture(scope="module")
def locked(release: Release, tmp_path_factory: pytest.TempPathFactory) -> Release:
    release.install(values(release, tmp_path_factory.mktemp("certificates")))
    return release


def values(release: Release, folder: Path) -> dict[str, Any]:
    authority = make_ca(folder)
    host = f"{release.name}-learner.{release.namespace.name}.svc"
    learner, envserver = issue(authority, folder, "learner", host), issue(authority, folder, "envserver", "envserver")
    return {
        "learner": {
            "recipe": "Catch",
            "resources": {"requests": {"cpu": "100m", "memory": "512Mi"}},
            "persistence": {"enabled": False},
        },
        "envserverDefaults": {"replicas": 1, "envsPerStream": 4, "resources": SMALL},
        "envservers": {"envserver": {"env": "kubebeast_envserver.catch:Catch-v0"}},
        "token": {"enabled": True, "value": TOKEN},
        "tls": {
            "enabled": True,
            "mutual": True,
            "cert": learner.cert.read_text(),
            "key": learner.key.read_text(),
            "ca": authority.pem.read_text(),
            "client": {"cert": envserver.cert.read_text(), "key": envserver.key.read_text()},
        },
        "networkPolicy": {"enabled": True},
    }


def test_its_own_env_servers_get_in(locked: Release) -> None:
    locked.wait_for_streams(1)
    locked.wait_for_step(100)
    assert locked.metrics()["kubebeast_streams_unauthenticated_total"] == 0.0


def test_helm_test_knows_the_way_in(locked: Release) -> None:
    locked.play_test_stream()


def test_a_pod_without_certificate_and_token_stays_outside(locked: Release) -> None:
    accepted = locked.wait_for_streams(1)["kubebeast_streams_accepted_total"]
    (pod,) = locked.envservers()
    image = pod["spec"]["containers"][0]["image"]
    address = f"{locked.name}-learner:4431"
    flags = ("--env=kubebeast_envserver.catch:Catch-v0", f"--address={address}", "--max-redials=1")
    pull = ("--image-pull-policy=IfNotPresent", "--restart=Never")
    locked.namespace.kubectl("run", "stranger", f"--image={image}", *pull, "--", *flags)

    def exit_code() -> int | None:
        status = locked.namespace.get("pod", "stranger")["status"]["containerStatuses"][0]["state"]
        code: int | None = status.get("terminated", {}).get("exitCode")
        return code

    assert eventually(exit_code, within_s=READY_S, what="a stranger that gave up") == 4
    assert locked.metrics()["kubebeast_streams_accepted_total"] == accepted


def test_the_token_is_in_no_log_and_no_specification(locked: Release) -> None:
    pods = [locked.learner(), *locked.envservers()]
    for pod in pods:
        assert TOKEN not in str(pod)
        assert TOKEN not in locked.namespace.kubectl("logs", pod["metadata"]["name"])
    assert TOKEN not in locked.namespace.kubectl("get", "configmaps", "--output=yaml")
