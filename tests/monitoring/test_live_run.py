"""A healthy run shows all of its metrics; a fault shows with the pod that has it.

The order of the file matters: the run is healthy first.
"""

import math

from tests.monitoring.catalogue import is_elsewhere, metric_names, panel_queries
from tests.monitoring.prometheus import Sample
from tests.monitoring.site import NUM_GPUS, STEP_MS, Site

LIMIT_S = 300.0
"""Longest wait for a change; the windows of the rules are tested without a clock (test_monitoring_rules)."""


def fires(site: Site, alert: str) -> set[str]:
    """Returns the pods that the alert names, once it fires; "" stands for no pod."""

    def look() -> set[str] | None:
        return {found.get("pod", "") for found in site.prometheus.firing() if found["alertname"] == alert} or None

    return site.prometheus.eventually(LIMIT_S, look, f"{alert} fires")


def shown(site: Site, panel: str, index: int = 0) -> list[Sample]:
    """Returns the present samples of a query of the panel."""
    return site.prometheus.query(panel_queries(panel)[index].expr)


def has_data(samples: list[Sample]) -> bool:
    """Returns False if a sample is not a number, as a quantile of nothing is: it draws nothing."""
    return samples != [] and not any(math.isnan(sample.value) for sample in samples)


def test_every_metric_is_scraped(site: Site) -> None:
    wanted = metric_names()

    assert len(wanted) > 50
    missing = sorted(wanted)

    def look() -> bool | None:
        missing[:] = sorted(wanted - site.prometheus.metric_names())
        return None if missing else True

    site.prometheus.eventually(LIMIT_S, look, missing)


def test_learner_and_env_servers_carry_the_labels_of_pods(site: Site) -> None:
    release = {"namespace": "local", "job": "local"}
    (learner,) = site.prometheus.query("kubebeast_streams")
    env_servers = site.prometheus.query("kubebeast_envserver_streams_connected")

    assert release.items() <= learner.labels.items()
    assert all(release.items() <= sample.labels.items() for sample in env_servers)
    assert {(sample.labels["pod"], sample.labels["kubebeast_group"]) for sample in env_servers} == {
        ("one", "paced"),
        ("two", "paced"),
        ("three", "paced"),
    }


def test_every_rule_is_evaluated_without_an_error(site: Site) -> None:
    rules = site.prometheus.rules()

    assert len(rules) > 10
    assert {rule["name"]: rule.get("lastError") for rule in rules if rule["health"] != "ok"} == {}


def test_every_panel_shows_data(site: Site) -> None:
    missing = [query for query in panel_queries() if not is_elsewhere(query.expr)]
    assert len(missing) > 50

    def look() -> bool | None:
        missing[:] = [query for query in missing if not has_data(site.prometheus.query(query.expr))]
        return None if missing else True

    site.prometheus.eventually(LIMIT_S, look, missing)


def test_every_gpu_is_shown_with_its_load_and_memory(site: Site) -> None:
    for panel in ("GPU at work", "GPU memory"):
        load = {sample.labels["device"]: sample.value for sample in shown(site, panel)}
        assert load == {str(device): 0.5 for device in range(NUM_GPUS)}


def test_nothing_goes_on_firing(site: Site) -> None:
    """An alert may be right about a machine that stood still for a while; it ends when the machine continues."""
    firing = site.prometheus.firing()

    def look() -> bool | None:
        firing[:] = site.prometheus.firing()
        return None if firing else True

    site.prometheus.eventually(LIMIT_S, look, firing)


def test_a_slow_env_server_is_named(site: Site) -> None:
    site.start("slow", step_ms=10 * STEP_MS)

    assert fires(site, "KubeBeastEnvServerSlow") == {"slow"}
    slowest = max(shown(site, "Pods, the slowest first"), key=lambda sample: sample.value)
    assert slowest.labels["pod"] == "slow"


def test_a_killed_env_server_is_named(site: Site) -> None:
    site.kill("three")

    def disconnects() -> list[Sample] | None:
        ended = shown(site, "Streams that end or are turned away")
        return [sample for sample in ended if sample.labels["reason"] == "disconnect" and sample.value > 0] or None

    site.prometheus.eventually(LIMIT_S, disconnects, "the panel shows a disconnect")
    assert fires(site, "KubeBeastEnvServerGone") == {"three"}


def test_a_fleet_that_is_too_small_starves_the_learner(site: Site) -> None:
    for name in ("one", "two"):
        site.dismiss(name)

    assert fires(site, "KubeBeastLearnerStarved") == {""}
    (waits,) = shown(site, "Learner waits for the fleet")
    assert waits.value > 0.5
    assert not {"one", "two"} & {alert.get("pod") for alert in site.prometheus.firing()}


def test_a_training_that_stands_still_is_told(site: Site) -> None:
    with site.hanging():
        assert fires(site, "KubeBeastNoProgress") == {""}


def test_a_learner_that_restarts_again_and_again_is_told(site: Site) -> None:
    for _ in range(3):
        site.restart_learner()

    assert fires(site, "KubeBeastLearnerRestarting") == {""}
