"""Fleets under the chart's HorizontalPodAutoscaler settle at the size that keeps the busiest stage nearly busy."""

import itertools
import math
from pathlib import Path

import pytest
import yaml

from tests.chart.autoscaled import DEMAND_WINDOW_S, SCRAPE_S, History, Plant, Scaling, simulate
from tests.chart.chart import CHART, render
from tests.chart.prometheus import promtool

MAX_REPLICAS = 64
MINUTES = 90
SETTLED_S = 3600
"""Time in seconds after which nothing changes any more."""
PODS_NEEDED = 10
"""Pods that are as fast as the learner, by the plant's defaults."""
HOLDS = range(9, 12)
"""Sizes around it at which the autoscaler's tolerance keeps the fleet."""

CASES: dict[str, tuple[Plant, int, range]] = {
    "too small": (Plant(), 1, HOLDS),
    "too large": (Plant(), 50, HOLDS),
    "inference-bound": (Plant(inference_rate=500.0), 1, range(4, 6)),
    "inference-bound and too small at first": (
        Plant(inference_rate=2000.0, learner_rate=lambda now_s: 1e5),
        2,
        range(17, 22),
    ),
    "CPU-bound": (Plant(cpu_rate=700.0), 1, range(6, 10)),
    "bound by old data": (Plant(learner_rate=lambda now_s: 1e5, lag_of_pod=2.0), 1, range(9, 14)),
    "learner-bound": (Plant(learner_rate=lambda now_s: 250.0), 10, range(2, 4)),
    "learner in bursts": (Plant(learner_rate=lambda now_s: 1000.0 if now_s % 120 < 60 else 500.0), 10, range(6, 11)),
    "learner in long bursts": (Plant(learner_rate=lambda now_s: 1000.0 if now_s % 480 < 240 else 700.0), 10, HOLDS),
    "pods that come up slowly": (Plant(start_s=lambda now_s: 180), 1, HOLDS),
    "pods that come up at any time": (Plant(start_s=lambda now_s: 20 + now_s * 7919 % 240), 1, HOLDS),
}


@pytest.fixture(scope="module")
def scaling() -> Scaling:
    """The settings of the chart's HorizontalPodAutoscaler."""
    group = {"name": "pong", "env": "x", "autoscaling": {"maxReplicas": MAX_REPLICAS, "hpa": {"enabled": True}}}
    spec = render({"envservers": [group]}).get("HorizontalPodAutoscaler")["spec"]
    (metric,) = spec["metrics"]
    milli = metric["external"]["target"]["value"]
    assert milli.endswith("m")
    return Scaling(int(milli[:-1]) / 1000, spec["minReplicas"], spec["maxReplicas"], spec["behavior"])


def run(case: str, scaling: Scaling) -> History:
    plant, first_replicas, _ = CASES[case]
    return simulate(plant, scaling, first_replicas=first_replicas, minutes=MINUTES)


def turns(replicas: list[int]) -> int:
    """Returns the number of times that the fleet changes from growing to shrinking or back."""
    changes = [after - before for before, after in itertools.pairwise(replicas) if after != before]
    return sum((before > 0) != (after > 0) for before, after in itertools.pairwise(changes))


@pytest.mark.parametrize("case", CASES)
def test_a_fleet_should_settle_and_neither_run_away_nor_flap(case: str, scaling: Scaling) -> None:
    history, wanted = run(case, scaling), CASES[case][2]
    settled = {
        replicas for (at_s, _), replicas in zip(history.ratios, history.replicas, strict=True) if at_s > SETTLED_S
    }

    assert len(settled) == 1
    assert settled.pop() in wanted
    assert max(history.replicas) <= max(CASES[case][1], wanted.stop - 1)
    assert turns(history.replicas) == 0


def test_a_learner_whose_speed_goes_in_waves_should_be_followed_by_no_more_than_a_pod(scaling: Scaling) -> None:
    plant = Plant(learner_rate=lambda now_s: 1000 * (1 + 0.12 * math.sin(now_s / 90)))
    history = simulate(plant, scaling, first_replicas=PODS_NEEDED, minutes=MINUTES)

    assert {*history.replicas} <= {PODS_NEEDED - 1, PODS_NEEDED, PODS_NEEDED + 1}


def test_without_its_wait_for_new_pods_to_count_a_fleet_should_overshoot(scaling: Scaling) -> None:
    """Shows the need for the chart's stabilization of growth."""
    hasty = {**scaling.behavior, "scaleUp": {**scaling.behavior["scaleUp"], "stabilizationWindowSeconds": 0}}
    plant, first_replicas, _ = CASES["pods that come up slowly"]
    history = simulate(
        plant,
        Scaling(scaling.target, scaling.min_replicas, scaling.max_replicas, hasty),
        first_replicas=first_replicas,
        minutes=MINUTES,
    )

    assert max(history.replicas) > 1.5 * PODS_NEEDED


@pytest.mark.parametrize("case", CASES)
def test_prometheus_should_answer_every_look_as_the_simulation_did(case: str, scaling: Scaling, tmp_path: Path) -> None:
    history = run(case, scaling)
    series = {
        "learner_starved_ratio": history.starved,
        "inference_busy_ratio": history.inference_busy,
        "machine_cpu_seconds_total": history.cpu_s,
        "machine_cpus": [4.0] * len(history.cpu_s),
        "policy_lag_updates": history.lag,
        "streams": history.streams,
        "streams_parked": history.parked,
        "learner_step": [0.0] * len(history.cpu_s),
        "learner_total_steps": [1e9] * len(history.cpu_s),
    }
    query = (CHART / "rules" / "demand.promql").read_text(encoding="utf-8").replace("%s", 'service="demo"')
    # Before a whole window has passed, rate() guesses the values before the first sample.
    looks = [(at_s, ratio) for at_s, ratio in history.ratios if at_s > DEMAND_WINDOW_S]
    test = {
        "interval": f"{SCRAPE_S}s",
        "input_series": [
            {"series": f'kubebeast_{name}{{service="demo"}}', "values": " ".join(map(repr, values))}
            for name, values in series.items()
        ],
        "promql_expr_test": [
            {
                "expr": f"abs({query} - {ratio!r}) < bool 1e-9",
                "eval_time": f"{at_s}s",
                "exp_samples": [{"labels": '{service="demo"}', "value": 1}],
            }
            for at_s, ratio in looks
        ],
    }
    (tmp_path / "looks.yaml").write_text(yaml.safe_dump({"evaluation_interval": f"{SCRAPE_S}s", "tests": [test]}))

    assert len(looks) > 300
    promtool("test", "rules", str(tmp_path / "looks.yaml"))
