"""Four runs of a sweep share one fleet by their weights while it grows, shrinks and loses one of them.

The order of the file matters: the sweep goes on.
"""

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.cluster import eventually, is_ready
from tests.e2e.release import READY_S, Release, Values, check_books

CODE = "code"
WEIGHTS = {"000-seed1": 1.0, "001-seed1": 2.0, "002-seed1": 3.0, "003-seed1": 4.0}
"""Weight of each run: that of its trial."""
STREAMS_PER_POD, NUM_PODS, FEW_PODS = 4, 4, 1
WINDOW_S = float(os.environ.get("E2E_SHARES_S", "100"))
ERROR = 0.05 * 300 / WINDOW_S
"""Largest relative error of a run's share of the time of all streams, over WINDOW_S: 5 % over five minutes."""
FREED_WITHIN_S = 5.0
STEP_MS = 100.0
"""Environments are so slow that a learner can use any number of them, on a busy machine too."""


def values(xpid: str = "", **entries: Any) -> Values:
    """Returns the values of a sweep with the name `xpid`, and with other entries of its file."""
    few: Values = {"requests": {"cpu": "50m", "memory": "256Mi"}}
    settings = {
        "total_steps": 1_000_000_000,
        "unroll_length": 5,
        "batch_size": 2,
        "log_interval_s": 1,
        "compile": "off",
    }
    return {
        "learner": {"recipe": "torchbeast", "xpid": xpid, "config": {"learner_threads": 1}, "resources": few},
        "sweep": {
            "file": {
                "settings": settings,
                "parameters": {"broker_weight": sorted(WEIGHTS.values())},
                "search": "grid",
                "pruner": "none",
                **entries,
            },
            "parallel": len(WEIGHTS),
            "resources": few,
            "broker": {"resources": few},
        },
        "envserverDefaults": {
            "replicas": NUM_PODS,
            "numStreams": STREAMS_PER_POD,
            "envsPerStream": 1,
            "resources": few,
            "extraEnv": [{"name": "PYTHONPATH", "value": f"/{CODE}"}],
            "extraVolumes": [{"name": CODE, "configMap": {"name": CODE}}],
            "extraVolumeMounts": [{"name": CODE, "mountPath": f"/{CODE}", "readOnly": True}],
        },
        "envservers": {"paced": {"env": "environments:Paced-v0", "kwargs": {"step_ms": STEP_MS}}},
    }


class Fleet:
    """The fleet of the release, as its broker has it."""

    def __init__(self, release: Release) -> None:
        self._release = release

    def runs(self) -> dict[str, dict[str, Any]]:
        (broker,) = self._release.namespace.pods(instance=self._release.name, component="broker")
        page = json.loads(self._release.namespace.raw(broker["metadata"]["name"], 9092, "/fleet"))
        return {run["run_id"]: run for run in page["runs"]}

    def wait_until(self, condition: Callable[[dict[str, int]], bool], within_s: float, what: str) -> float:
        """Waits until the streams that play for each run meet the condition; returns the seconds."""
        began = time.monotonic()

        def look() -> dict[str, int] | None:
            playing = {name: int(run["playing"]) for name, run in self.runs().items()}
            return playing if condition(playing) else None

        eventually(look, within_s=within_s, what=what)
        return time.monotonic() - began

    def scale(self, num_pods: int) -> None:
        """Blocks until all streams of the pods play."""
        namespace, name = self._release.namespace, f"deployment/{self._release.name}-paced"
        namespace.kubectl("scale", name, f"--replicas={num_pods}")
        num_streams = num_pods * STREAMS_PER_POD
        self.wait_until(lambda playing: sum(playing.values()) == num_streams, READY_S, f"{num_streams} streams")

    def stream_seconds(self) -> dict[str, float]:
        return {name: float(run["stream_seconds"]) for name, run in self.runs().items()}


@pytest.fixture(scope="module")
def fleet(release: Release) -> Fleet:
    source = Path(__file__).parent / "environments.py"
    release.namespace.kubectl("create", "configmap", CODE, f"--from-file={source}")
    release.install(values())
    return Fleet(release)


def jobs(release: Release) -> dict[str, str]:
    """Returns the uids of the Jobs of the runs, by run."""
    items = release.namespace.get("jobs", f"--selector=kubebeast/sweep={release.name}")["items"]
    return {job["metadata"]["labels"]["kubebeast/run"]: job["metadata"]["uid"] for job in items}


def sweep_jobs(release: Release) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = release.namespace.get("jobs", "--selector=app.kubernetes.io/component=sweep")["items"]
    return items


def learner_of(release: Release, run: str) -> dict[str, Any]:
    """Waits for the ready pod of a run."""

    def look() -> dict[str, Any] | None:
        pods = [
            pod for pod in release.learners() if pod["metadata"]["labels"]["kubebeast/run"] == run and is_ready(pod)
        ]
        return pods[0] if len(pods) == 1 else None

    return eventually(look, within_s=READY_S, what=f"a learner of {run}")


def all_play(playing: dict[str, int]) -> bool:
    return playing.keys() == WEIGHTS.keys() and sum(playing.values()) == NUM_PODS * STREAMS_PER_POD


def test_every_run_has_a_job_and_all_streams_play(fleet: Fleet, release: Release) -> None:
    fleet.wait_until(all_play, 2 * READY_S, "four learners on sixteen streams")
    assert jobs(release).keys() == WEIGHTS.keys()
    weights = {name: run["weight"] for name, run in fleet.runs().items()}
    assert weights == WEIGHTS


def test_shares_follow_the_weights_while_the_fleet_shrinks_and_grows(fleet: Fleet) -> None:
    before, began = fleet.stream_seconds(), time.monotonic()
    time.sleep(WINDOW_S / 3)
    fleet.scale(FEW_PODS)
    time.sleep(WINDOW_S / 3)
    fleet.scale(NUM_PODS)
    time.sleep(max(0.0, WINDOW_S - (time.monotonic() - began)))
    played = {name: seconds - before[name] for name, seconds in fleet.stream_seconds().items()}
    total, total_weight = sum(played.values()), sum(WEIGHTS.values())
    shares = {name: seconds / total for name, seconds in played.items()}
    print(f"stream-seconds: {played}, shares: {shares}")

    assert shares == {name: pytest.approx(weight / total_weight, rel=ERROR) for name, weight in WEIGHTS.items()}


def test_streams_of_a_killed_learner_play_for_others(fleet: Fleet, release: Release) -> None:
    victim, before = max(WEIGHTS, key=lambda name: WEIGHTS[name]), jobs(release)
    pod = learner_of(release, victim)
    release.namespace.kubectl("delete", "pod", pod["metadata"]["name"], "--force", "--grace-period=0")
    num_streams = NUM_PODS * STREAMS_PER_POD

    def is_freed(playing: dict[str, int]) -> bool:
        return playing.get(victim, 0) == 0 and sum(playing.values()) == num_streams

    seconds = fleet.wait_until(is_freed, FREED_WITHIN_S, "all streams play for other runs")
    print(f"freed within {seconds:.1f} s")
    fleet.wait_until(all_play, READY_S, "the learner is back")
    assert jobs(release) == before
    for name in WEIGHTS:
        check_books(release.learner_metrics(learner_of(release, name)["metadata"]["name"]))


def test_the_next_pod_of_the_sweep_goes_on_with_the_jobs(fleet: Fleet, release: Release) -> None:
    before = jobs(release)
    (pod,) = release.namespace.pods(instance=release.name, component="sweep")
    release.namespace.kubectl("delete", "pod", pod["metadata"]["name"])

    def successor() -> bool:
        pods = release.namespace.pods(instance=release.name, component="sweep")
        return any(is_ready(each) and each["metadata"]["uid"] != pod["metadata"]["uid"] for each in pods)

    eventually(successor, within_s=READY_S, what="another pod of the sweep")
    fleet.wait_until(all_play, READY_S, "four learners on sixteen streams")
    assert jobs(release) == before


def test_an_upgrade_goes_on_with_the_trials_in_another_job(fleet: Fleet, release: Release) -> None:
    before, (first,) = jobs(release), sweep_jobs(release)
    release.install(values(goal=1e9))

    def are_replaced() -> bool:
        return not set(before.values()) & set(jobs(release).values())

    eventually(are_replaced, within_s=READY_S, what="other Jobs of the runs")
    fleet.wait_until(all_play, 2 * READY_S, "four learners on sixteen streams")
    (second,) = sweep_jobs(release)
    assert second["metadata"]["uid"] != first["metadata"]["uid"]
    assert second["status"].get("failed", 0) == 0 and not second["status"].get("conditions")
    assert jobs(release).keys() == WEIGHTS.keys()


def test_the_end_of_the_sweep_is_that_of_its_runs_and_frees_the_fleet(release: Release) -> None:
    release.uninstall()
    eventually(lambda: not jobs(release), within_s=READY_S, what="no Jobs of runs")
    release.install(values("second", settings=ended_soon(), parameters={"learning_rate": [0.001, 0.002]}))

    def is_complete() -> bool:
        (job,) = sweep_jobs(release)
        conditions = {condition["type"] for condition in job["status"].get("conditions") or []}
        assert "Failed" not in conditions, job["status"]
        return "Complete" in conditions

    eventually(is_complete, within_s=2 * READY_S, what="a complete sweep")
    eventually(lambda: not release.envservers("paced"), within_s=READY_S, what="no env-servers")


def ended_soon() -> dict[str, Any]:
    settings: dict[str, Any] = values()["sweep"]["file"]["settings"]
    return {**settings, "total_steps": 500}
