"""Two learners in pods of their own train one model, while learners and env-servers become fewer and more."""

from typing import Any

from tests.e2e.cluster import eventually, num_restarts
from tests.e2e.release import READY_S, Metrics, Release, check_books

NUM_STREAMS = 4
"""Streams of a pod: with 3 pods, one in 2048 fleets would leave a learner without any."""
VALUES = {
    "learner": {
        "replicas": 2,
        "recipe": "Catch",
        "config": {"total_steps": 1_000_000_000, "checkpoint_interval_minutes": 0.1, "log_interval_s": 1},
        "resources": {"requests": {"cpu": "100m", "memory": "512Mi"}},
        "persistence": {"size": "1Gi"},
    },
    "envserverDefaults": {
        "replicas": 4,
        "numStreams": NUM_STREAMS,
        "envsPerStream": 2,
        "resources": {"requests": {"cpu": "50m", "memory": "128Mi"}},
    },
    "envservers": {"envserver": {"env": "kubebeast_envserver.catch:Catch-v0"}},
}


def scale(training: Release, workload: str, replicas: int) -> None:
    training.namespace.kubectl("scale", workload, f"--replicas={replicas}")


def wait_until_spread(training: Release, num_learners: int, num_envservers: int, beyond_step: float) -> list[Metrics]:
    """Waits until `num_learners` learners share all streams, each with some, and have trained beyond that step."""

    def look() -> list[Metrics] | None:
        found = [training.learner_metrics(pod["metadata"]["name"]) for pod in training.learners()]
        streams = [metrics["kubebeast_streams"] for metrics in found]
        steps = {metrics["kubebeast_learner_step"] for metrics in found}
        is_spread = len(found) == num_learners and sum(streams) == num_envservers * NUM_STREAMS and all(streams)
        return found if is_spread and min(steps) > beyond_step else None

    what = f"{num_envservers} env-servers spread over {num_learners} learners that train"
    return eventually(look, within_s=READY_S, what=what)


def restarts(training: Release) -> dict[str, int]:
    """Returns the restarts of the env-servers' containers, by pod."""
    return {pod["metadata"]["uid"]: num_restarts(pod) for pod in training.envservers()}


def num_resumed(training: Release) -> int:
    """Returns the number of times that the first learner has resumed from a checkpoint."""
    return training.namespace.kubectl("logs", f"{training.name}-learner-0").count("resuming /runs/")


def test_learners_come_and_go_and_the_run_goes_on_from_its_checkpoint(release: Release) -> None:
    release.install(VALUES)
    (first, *_) = wait_until_spread(release, 2, 4, beyond_step=0)
    fleet, step = restarts(release), first["kubebeast_learner_step"]
    assert len(release.namespace.get("persistentvolumeclaims")["items"]) == 1

    for num_learners, num_envservers in ((1, 4), (2, 3)):
        resumed = num_resumed(release)
        scale(release, f"statefulset/{release.name}-peers", num_learners - 1)
        scale(release, f"deployment/{release.name}-envserver", num_envservers)
        learners = wait_until_spread(release, num_learners, num_envservers, beyond_step=step)
        assert num_resumed(release) > resumed
        for metrics in learners:
            check_books(metrics)
        step = learners[0]["kubebeast_learner_step"]

    assert restarts(release).items() <= fleet.items()
    assert {name: count for name, count in learner_restarts(release).items() if count} == {}


def learner_restarts(training: Release) -> dict[str, Any]:
    return {pod["metadata"]["name"]: num_restarts(pod) for pod in training.learners()}
