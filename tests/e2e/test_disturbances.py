"""A training continues while its fleet is scaled, its pods die, its nodes are drained and its release is upgraded."""

from pathlib import Path
from typing import Any

import pytest

from tests.e2e.cluster import eventually, is_ready, num_restarts, run
from tests.e2e.release import READY_S, Release, check_books

WINDOW_S = 8.0
ENVIRONMENTS = "environments"

SMALL = {"requests": {"cpu": "50m", "memory": "128Mi"}}
LEAKY = SMALL | {"limits": {"memory": "400Mi"}}
CONFIG = {"total_steps": 1_000_000_000, "checkpoint_interval_minutes": 0.1, "log_interval_s": 1}


def values(**config: Any) -> dict[str, Any]:
    """Two groups that feed one learner: the speed of one shows its size, and the other can be made to leak."""
    return {
        "learner": {
            "recipe": "Catch",
            "config": CONFIG | config,
            "resources": {"requests": {"cpu": "100m", "memory": "512Mi"}},
            "persistence": {"size": "1Gi"},
        },
        "envserverDefaults": {
            "replicas": 1,
            "envsPerStream": 4,
            "resources": SMALL,
            "extraEnv": [{"name": "PYTHONPATH", "value": f"/{ENVIRONMENTS}"}],
            "extraVolumes": [{"name": ENVIRONMENTS, "configMap": {"name": ENVIRONMENTS}}],
            "extraVolumeMounts": [{"name": ENVIRONMENTS, "mountPath": f"/{ENVIRONMENTS}", "readOnly": True}],
        },
        "envservers": {
            "envserver": {"env": f"{ENVIRONMENTS}:Paced-v0"},
            "leaky": {"env": f"{ENVIRONMENTS}:Leaking-v0", "replicas": 0, "resources": LEAKY},
        },
    }


@pytest.fixture(scope="module")
def training(release: Release) -> Release:
    source = Path(__file__).parent / "environments.py"
    release.namespace.kubectl("create", "configmap", ENVIRONMENTS, f"--from-file={source}")
    release.install(values())
    return release


def scale(training: Release, replicas: int, group: str = "envserver") -> None:
    training.namespace.kubectl("scale", f"deployment/{training.name}-{group}", f"--replicas={replicas}")


def identities(pods: list[dict[str, Any]]) -> dict[str, int]:
    """Returns the restarts of each pod's containers, by uid."""
    return {pod["metadata"]["uid"]: num_restarts(pod) for pod in pods}


def settle(training: Release, replicas: int) -> dict[str, int]:
    """Scales to `replicas` env-servers and waits for their streams; returns their identities."""
    scale(training, replicas)
    training.wait_for_streams(replicas)

    def look() -> list[dict[str, Any]] | None:
        pods = training.envservers()
        return pods if len(pods) == replicas and all(map(is_ready, pods)) else None

    return identities(eventually(look, within_s=READY_S, what=f"{replicas} env-servers that are ready"))


def test_throughput_follows_the_number_of_env_servers(training: Release) -> None:
    uid = training.learner()["metadata"]["uid"]
    rates = {}
    for replicas in (1, 4, 0, 2):
        scale(training, replicas)
        training.wait_for_streams(replicas)
        rates[replicas] = training.sampled_per_second(WINDOW_S)
        check_books(training.metrics())
    print("env-steps a second by number of env-servers:", rates)

    assert rates[0] == 0.0
    assert 2.5 < rates[4] / rates[1] < 5.5
    assert 1.4 < rates[2] / rates[1] < 2.6
    metrics = training.metrics()
    assert metrics["kubebeast_streams_accepted_total"] == 6.0
    assert metrics["kubebeast_streams_ended_total/bye"] == 4.0
    assert metrics["kubebeast_steps_total/dropped_stale"] == metrics["kubebeast_steps_total/dropped_close"] == 0.0
    assert identities([training.learner()]) == {uid: 0}


def test_helm_test_plays_a_stream_to_the_learner(training: Release) -> None:
    training.play_test_stream()


def test_a_deleted_learner_resumes_and_env_servers_come_back_by_themselves(training: Release) -> None:
    before = settle(training, 2)
    step = training.metrics()["kubebeast_learner_step"]
    pod = training.learner()["metadata"]

    training.namespace.kubectl("delete", "pod", pod["name"])
    learner = training.wait_for_ready_learner(other_than=pod["uid"])
    training.wait_for_streams(2, within_s=READY_S)

    assert training.wait_for_step(step + 1)["kubebeast_learner_step"] > step
    log = training.namespace.kubectl("logs", pod["name"])
    assert f"resuming /runs/{training.name}/checkpoint-" in log
    assert num_restarts(learner) == 0
    assert identities(training.envservers()) == before


def test_a_learner_that_loses_its_node_at_once_resumes_from_the_last_checkpoint(training: Release) -> None:
    before = settle(training, 2)
    pod = training.learner()["metadata"]

    training.namespace.kubectl("delete", "pod", pod["name"], "--force", "--grace-period=0")
    training.wait_for_ready_learner(other_than=pod["uid"])
    training.wait_for_streams(2, within_s=READY_S)

    assert f"resuming /runs/{training.name}/checkpoint-" in training.namespace.kubectl("logs", pod["name"])
    assert identities(training.envservers()) == before


def test_an_upgrade_and_a_rollback_roll_the_learner_alone(training: Release) -> None:
    before = settle(training, 2)
    for upgrade, expected, replicas in ((True, "entropy_cost: 0.02", 2), (False, "entropy_cost: 0.01", 1)):
        uid, step = training.learner()["metadata"]["uid"], training.metrics()["kubebeast_learner_step"]
        if upgrade:
            training.install(values(entropy_cost=0.02))
        else:  # back to the size of the fleet at that revision too, which kubectl owns since it scaled
            training.helm("rollback", training.name, "--force-conflicts", "--wait", f"--timeout={READY_S:.0f}s")
        learner = training.wait_for_ready_learner(other_than=uid)
        training.wait_for_streams(replicas)
        assert training.wait_for_step(step + 1)["kubebeast_learner_step"] > step
        settings = f"/runs/{training.name}/config.yaml"
        assert expected in training.namespace.kubectl("exec", learner["metadata"]["name"], "--", "cat", settings)
        after = identities(training.envservers())
        assert len(after) == replicas
        assert after.items() <= before.items()


def test_an_env_server_that_runs_out_of_memory_disturbs_nobody_else(training: Release) -> None:
    before = settle(training, 2)
    learner = training.learner()["metadata"]["uid"]
    scale(training, 1, "leaky")
    training.wait_for_streams(3)
    (leaky,) = training.envservers("leaky")
    name = leaky["metadata"]["name"]

    training.namespace.kubectl("exec", name, "--", "touch", "/tmp/leak")

    def was_killed() -> bool:
        (pod,) = training.envservers("leaky")
        replaced = training.envserver_metrics(name).get("kubebeast_envserver_stream_restarts_total", 0.0) > 0
        return replaced or num_restarts(pod) > 0

    eventually(was_killed, within_s=READY_S, what="a process killed by the kernel")
    step = training.wait_for_streams(3)["kubebeast_learner_step"]
    training.wait_for_step(step + 100)
    check_books(training.metrics())
    assert identities(training.envservers()) == before
    assert identities([training.learner()]) == {learner: 0}
    scale(training, 0, "leaky")
    training.wait_for_streams(2)


def test_a_drained_node_moves_its_pods_and_training_goes_on(training: Release) -> None:
    if len(training.namespace.get("nodes")["items"]) < 2:
        pytest.skip("a node can only be drained where there is another one")
    settle(training, 4)
    pod = training.learner()
    node, step = pod["spec"]["nodeName"], training.metrics()["kubebeast_learner_step"]
    mine = f"--pod-selector=app.kubernetes.io/instance={training.name}"
    try:
        run("kubectl", "drain", node, "--ignore-daemonsets", "--delete-emptydir-data", mine)
        moved = training.wait_for_ready_learner(other_than=pod["metadata"]["uid"])
        training.wait_for_streams(4)
    finally:
        run("kubectl", "uncordon", node)

    assert moved["spec"]["nodeName"] != node
    assert training.wait_for_step(step + 1)["kubebeast_learner_step"] > step
    check_books(training.metrics())
