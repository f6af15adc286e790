"""Alerts of both paces have complete texts and existing metrics, and fire on time, which promtool tests in rules/."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.chart.prometheus import (
    LOCAL_RULES,
    METRIC,
    RULES,
    alerts,
    known_metrics,
    panels,
    promtool,
    rules,
)

RULE_TESTS = sorted((Path(__file__).parent / "rules").glob("*_test.yaml"))
LOCAL_LATEST_S = 60
LOCAL_HISTORY_S = 600
"""Length of the history that a run is compared with; an alert need not wait for it to pass."""


def local_rules() -> list[dict[str, Any]]:
    groups = yaml.safe_load(LOCAL_RULES.read_text(encoding="utf-8"))["groups"]
    return [rule for group in groups for rule in group["rules"]]


def seconds(duration: str) -> int:
    return int(duration[:-1]) * {"s": 1, "m": 60, "h": 3600}[duration[-1]]


@pytest.mark.parametrize("alert", alerts())
def test_an_alert_should_say_what_where_and_what_to_do(alert: str) -> None:
    rule = alerts()[alert]
    annotations = rule["annotations"]

    assert rule["labels"]["severity"] in ("critical", "warning", "info")
    assert annotations.keys() == {"summary", "description", "runbook", "guide"}
    assert annotations["runbook"].startswith("1. ")
    assert "{{ $labels.namespace }}/{{ $labels.job }}" in annotations["summary"]
    assert "by (cluster, namespace, job" in rule["expr"]


@pytest.mark.parametrize("alert", alerts())
def test_an_alert_should_lead_to_its_section_and_to_panels_that_exist(alert: str) -> None:
    annotations = alerts()[alert]["annotations"]
    looks = re.findall(r'"([^"]+)"', annotations["description"].partition(" Look at ")[2])

    assert annotations["guide"] == f"docs/alerts.md#{alert.lower()}"
    assert looks
    assert {*looks} <= {panel["title"] for panel in panels()}


@pytest.mark.parametrize("alert", alerts())
def test_an_alert_should_have_a_test_that_fires_it(alert: str) -> None:
    assert any(f'ALERTS{{alertname="{alert}"' in path.read_text(encoding="utf-8") for path in RULE_TESTS)


@pytest.mark.parametrize("path", [RULES, LOCAL_RULES], ids=["chart", "local"])
def test_promtool_should_find_no_fault_in_the_rules(path: Path) -> None:
    assert f"{len(rules())} rules found" in promtool("check", "rules", str(path))


@pytest.mark.parametrize("path", RULE_TESTS, ids=lambda path: path.stem)
def test_alerts_should_fire_when_they_must_and_only_then(path: Path) -> None:
    promtool("test", "rules", str(path))


def test_rules_should_ask_for_metrics_that_exist_only() -> None:
    asked = {name for rule in rules() for name in METRIC.findall(rule["expr"])}

    assert len(asked) > 20
    assert asked - known_metrics() == set()


def test_both_paces_should_differ_in_durations_only() -> None:
    duration = re.compile(r"\b\d+[smh]\b")

    def timeless(rule: dict[str, Any]) -> str:
        return duration.sub("", json.dumps(rule))

    assert [timeless(rule) for rule in local_rules()] == [timeless(rule) for rule in rules()]


def test_a_local_alert_should_fire_within_a_minute_of_its_cause() -> None:
    for rule in local_rules():
        ranges = [seconds(text) for text in re.findall(r"\[(\w+)\]", rule["expr"])]
        window_s = max([length for length in ranges if length != LOCAL_HISTORY_S], default=0)

        assert window_s + seconds(rule.get("for", "0s")) < LOCAL_LATEST_S, rule
