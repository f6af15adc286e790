"""PPO in one file, in the learner's pod but without the learner, trains while its env-servers go and come."""

import re
from typing import Any, NamedTuple

import pytest

from tests.e2e.cluster import eventually, is_ready, num_restarts
from tests.e2e.release import READY_S, ROOT, Release

PROGRAM = ROOT / "examples" / "fleet_ppo.py"
CODE = "trainer"
ENVS_PER_STREAM, NUM_STREAMS = 2, 2
"""Environments and streams that play; further streams wait in reserve."""
GRACE_S = 900
"""Grace period, longer than READY_S: a trainer that ignored SIGTERM would not end in time."""
SMALL = {"requests": {"cpu": "50m", "memory": "128Mi"}}
LINE = re.compile(r"^step (\d+) .* lost (\d+)$", re.MULTILINE)


class Progress(NamedTuple):
    """The trainer's log, which has one line per update."""

    updates: int
    step: int
    lost: int


def values() -> dict[str, Any]:
    flags = {"address": "$(KUBEBEAST_ADDRESS)", "http-address": "$(KUBEBEAST_HTTP_ADDRESS)"}
    flags |= {"token-file": "$(KUBEBEAST_TOKEN_FILE)", "num-envs": f"{ENVS_PER_STREAM * NUM_STREAMS}"}
    flags |= {"total-steps": f"{10**9}"}
    return {
        "learner": {
            "command": ["python", f"/{CODE}/{PROGRAM.name}", *(f"--{name}={value}" for name, value in flags.items())],
            "extraVolumes": [{"name": CODE, "configMap": {"name": CODE}}],
            "extraVolumeMounts": [{"name": CODE, "mountPath": f"/{CODE}", "readOnly": True}],
            "resources": {"requests": {"cpu": "100m", "memory": "512Mi"}},
            "persistence": {"enabled": False},
            "terminationGracePeriodSeconds": GRACE_S,
        },
        "token": {"enabled": True, "value": "open-sesame"},
        "envserverDefaults": {"replicas": NUM_STREAMS, "envsPerStream": ENVS_PER_STREAM, "resources": SMALL},
        "envservers": {"envserver": {"env": "CartPole-v1"}},
    }


@pytest.fixture(scope="module")
def training(release: Release) -> Release:
    release.namespace.kubectl("create", "configmap", CODE, f"--from-file={PROGRAM}")
    release.install(values())
    return release


def progress(training: Release) -> Progress | None:
    """Returns the progress; None before the first update."""
    lines = LINE.findall(training.namespace.kubectl("logs", training.learner()["metadata"]["name"], "--tail=-1"))
    return Progress(len(lines), *map(int, lines[-1])) if lines else None


def wait_for_updates(training: Release, count: int) -> Progress:
    """Waits until there are `count` updates."""

    def look() -> Progress | None:
        seen = progress(training)
        return seen if seen is not None and seen.updates >= count else None

    return eventually(look, within_s=READY_S, what=f"{count} updates")


def test_it_trains_on_the_env_servers_of_the_chart(training: Release) -> None:
    before = wait_for_updates(training, 2)
    rows = training.metrics()["kubebeast_fleet_rows_total/step"]
    after = wait_for_updates(training, before.updates + 10)

    assert after.step > before.step
    metrics = training.wait_for_streams(NUM_STREAMS)
    assert metrics["kubebeast_fleet_rows_total/step"] > rows
    assert is_ready(training.learner())


def test_an_env_server_in_reserve_takes_the_places_of_one_that_is_killed(training: Release) -> None:
    training.namespace.kubectl("scale", f"deployment/{training.name}-envserver", f"--replicas={NUM_STREAMS + 1}")
    eventually(
        lambda: training.metrics()["kubebeast_fleet_streams_in_reserve"] == 1,
        within_s=READY_S,
        what="a stream in reserve",
    )
    before = progress(training)
    assert before is not None and before.lost == 0
    victim = next(pod for pod in training.envservers() if is_ready(pod))["metadata"]["name"]

    training.namespace.kubectl("delete", "pod", victim, "--force", "--grace-period=0")

    def is_told() -> Progress | None:
        seen = progress(training)
        return seen if seen is not None and seen.lost >= ENVS_PER_STREAM else None

    lost = eventually(is_told, within_s=READY_S, what="environments that are lost")
    wait_for_updates(training, lost.updates + 10)
    training.wait_for_streams(NUM_STREAMS)
    assert num_restarts(training.learner()) == 0


def test_a_fleet_that_is_gone_and_comes_back_is_waited_for(training: Release) -> None:
    training.namespace.kubectl("scale", f"deployment/{training.name}-envserver", "--replicas=0")
    training.wait_for_streams(0)
    before = progress(training)
    assert before is not None
    training.namespace.kubectl("scale", f"deployment/{training.name}-envserver", f"--replicas={NUM_STREAMS}")

    wait_for_updates(training, before.updates + 10)
    assert num_restarts(training.learner()) == 0


def test_it_ends_when_it_is_told_to(training: Release) -> None:
    pod = training.learner()["metadata"]
    training.namespace.kubectl("delete", "pod", pod["name"], f"--timeout={READY_S:.0f}s")

    training.wait_for_ready_learner(other_than=pod["uid"])
    wait_for_updates(training, 2)
