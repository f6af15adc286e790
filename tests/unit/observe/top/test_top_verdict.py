"""The verdict names the bottleneck, and the demand ratio the usable multiple of the fleet, as in docs/monitoring.md."""

import pytest

from kubebeast_common.pool.demand import demand_ratio, make_loads
from kubebeast_observe.top.verdict import judge

STARVED_INFERENCE = {"starved": 0.5, "inference": 1.0}
OVERLOADED = {"starved": 0.5, "inference": 0.9, "cpu": 0.99, "lag": 94.0, "parked": 0.27}
"""Measurements of 520 environments on two cores."""


def measured(
    starved: float | None = 0.0,
    inference: float | None = None,
    cpu: float | None = None,
    lag: float | None = None,
    parked: float | None = 0.0,
) -> tuple[str, float]:
    """Returns the verdict's code and the demand ratio."""
    loads = make_loads(
        starved_ratio=starved, inference_busy_ratio=inference, cpu_busy_ratio=cpu, policy_lag_updates=lag
    )
    verdict = judge(is_finished=False, streams=4, loads=loads, parked_ratio=parked)
    assert verdict.text
    return verdict.code, round(demand_ratio(loads, parked or 0.0), 3)


@pytest.mark.parametrize(
    ("values", "code", "ratio"),
    [
        ({"starved": 0.6}, "fleet", 2.5),
        ({"starved": 0.99}, "fleet", 10.0),
        ({"starved": 0.6, "inference": 0.5, "cpu": 0.3, "lag": 3.0}, "fleet", 2.0),
        (STARVED_INFERENCE, "inference", 1.0),
        ({"starved": 0.6, "inference": 0.8}, "inference", 1.25),
        ({"starved": 0.5, "cpu": 1.0}, "cpu", 1.0),
        ({"starved": 0.5, "cpu": 1.0, "inference": 1.0}, "cpu", 1.0),
        (OVERLOADED, "cpu", 0.73),
        ({"starved": 0.5, "lag": 40.0}, "lag", 1.0),
        ({"starved": 0.02, "parked": 0.6}, "learner", 0.408),
        ({"starved": 0.05, "parked": 0.05, "inference": 0.99, "cpu": 0.9}, "balanced", 0.96),
        ({"starved": 0.05, "lag": 40.0}, "lag", 1.0),
        ({"starved": 0.4, "parked": 0.3}, "queue", 1.167),
        ({"starved": 0.4, "parked": 0.7, "lag": 16.0}, "lag", 0.375),
        ({"starved": 0.2, "parked": 0.3}, "learner", 0.875),
        ({"starved": None, "cpu": 0.5, "parked": 0.6}, "balanced", 0.8),
        ({"starved": None, "parked": None}, "unknown", 10.0),
    ],
)
def test_the_busiest_stage_bounds_what_a_larger_fleet_could_do(
    values: dict[str, float], code: str, ratio: float
) -> None:
    assert measured(**values) == (code, ratio)


@pytest.mark.parametrize("values", [STARVED_INFERENCE, OVERLOADED])
def test_more_env_servers_are_never_advised_where_they_would_only_wait(values: dict[str, float]) -> None:
    code, ratio = measured(**values)
    assert code != "fleet" and ratio <= 1


def test_a_learner_without_streams_is_told_apart_from_one_that_has_finished() -> None:
    loads = make_loads(starved_ratio=1.0, inference_busy_ratio=0.0, cpu_busy_ratio=0.1, policy_lag_updates=None)
    assert judge(is_finished=False, streams=0, loads=loads, parked_ratio=None).code == "no-streams"
    assert judge(is_finished=True, streams=0, loads=loads, parked_ratio=None).code == "finished"


@pytest.mark.parametrize("parked", [0.0, 0.6])
def test_a_learner_without_streams_is_named_however_much_another_one_has_to_do(parked: float) -> None:
    loads = make_loads(starved_ratio=0.0, inference_busy_ratio=0.5, cpu_busy_ratio=0.5, policy_lag_updates=2.0)
    verdict = judge(is_finished=False, streams=3, loads=loads, parked_ratio=parked, starved_ranks=[1])
    assert (verdict.code, verdict.text) == ("ranks", "rank 1 has too few streams")
    assert "more env-servers" in verdict.advice and "fewer" not in verdict.advice
    assert demand_ratio(loads, parked, rank_ratio=2.0) == 2.0
    several = judge(is_finished=False, streams=3, loads=loads, parked_ratio=parked, starved_ranks=[1, 3])
    assert several.text == "ranks 1, 3 have too few streams"


def test_the_end_counts_more_than_a_learner_without_streams() -> None:
    finished = judge(is_finished=True, streams=3, loads={}, parked_ratio=None, starved_ranks=[1])
    assert finished.code == "finished"


def test_a_fleet_of_no_replicas_is_paused_and_the_advice_names_how_it_comes_back() -> None:
    loads = make_loads(starved_ratio=1.0, inference_busy_ratio=0.0, cpu_busy_ratio=0.1, policy_lag_updates=None)
    verdict = judge(is_finished=False, streams=0, loads=loads, parked_ratio=None, paused_groups=["pong", "catch"])
    assert (verdict.code, verdict.text) == ("paused", "the fleet is scaled to zero")
    assert "kubebeast fleet scale pong REPLICAS" in verdict.advice and "logs" not in verdict.advice
