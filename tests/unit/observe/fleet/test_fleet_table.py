"""A fleet is shown as a table for people and as JSON for scripts."""

import io
import json
from dataclasses import replace
from typing import Any

from rich.console import Console

from kubebeast_observe.fleet.state import FleetState, GroupState, PodState, Reading, as_json
from kubebeast_observe.fleet.table import draw
from kubebeast_observe.numbers import age_text
from tests.unit.observe.fleet.fleet_objects import pod_state

LEARNER = pod_state(
    "kb-learner-0",
    reading=Reading(streams=2, steps_per_second=1234.4, step=1000, total_steps=50_000, free_bytes=12_500_000_000),
)
SERVING = pod_state("kb-envserver-a", reading=Reading(streams=2, steps_per_second=1200.0))
BROKEN = pod_state(
    "kb-envserver-b", is_ready=False, status="CrashLoopBackOff", restarts=7, last_exit="OOMKilled", metrics_port=None
)


def group(*pods: PodState, **changes: Any) -> GroupState:
    values: dict[str, Any] = {
        "group": "envserver",
        "release": "kb",
        "deployment": "kb-envserver",
        "desired": 2,
        "ready": 1,
    }
    return GroupState(**(values | {"selector": "a=b", "pods": pods} | changes))


FLEET = FleetState(namespace="train", learners=[LEARNER], groups=[group(SERVING, BROKEN)], notes=["something is odd"])


def lines(state: FleetState, width: int = 200, height: int | None = None) -> list[list[str]]:
    console = Console(width=width, file=io.StringIO(), record=True)
    console.print(draw(state, width, height))
    return [line.split() for line in console.export_text().splitlines()]


def test_every_learner_group_and_pod_has_a_row() -> None:
    assert lines(FLEET) == [
        ["namespace", "train"],
        ["name", "status", "restarts", "last", "exit", "streams", "steps/s", "node", "age"],
        ["learner", "step", "1,000", "of", "50,000", "12.5", "GB", "free"],
        ["kb-learner-0", "ready", "0", "2", "1,234", "node1", "90s"],
        ["envserver", "deployment", "kb-envserver", "1/2", "ready", "7", "2", "1,200"],
        ["kb-envserver-a", "ready", "0", "2", "1,200", "node1", "90s"],
        ["kb-envserver-b", "CrashLoopBackOff", "7", "OOMKilled", "-", "-", "node1", "90s"],
        ["something", "is", "odd"],
    ]


def test_the_spread_of_streams_over_learners_is_shown() -> None:
    ranks = [
        pod_state(name, reading=replace(LEARNER.reading, streams=streams, rank=rank))
        for name, streams, rank in (("kb-learner-0", 5, "0"), ("kb-learner-0", 3, "1"), ("kb-peers-0", 4, "2"))
    ]
    assert lines(replace(FLEET, learners=ranks))[2:6] == [
        ["3", "learners", "step", "1,000", "of", "50,000", "12.5", "GB", "free", "12", "3,703"],
        ["kb-learner-0", "rank", "0", "ready", "0", "5", "1,234", "node1", "90s"],
        ["kb-learner-0", "rank", "1", "ready", "0", "3", "1,234", "node1", "90s"],
        ["kb-peers-0", "rank", "2", "ready", "0", "4", "1,234", "node1", "90s"],
    ]


def test_a_pod_that_runs_and_is_not_ready_says_so() -> None:
    waiting = group(replace(SERVING, is_ready=False))
    assert ["kb-envserver-a", "not", "ready"] in [row[:3] for row in lines(replace(FLEET, groups=[waiting]))]


def test_names_in_brackets_are_not_markup() -> None:
    assert ["[red]"] in lines(replace(FLEET, notes=["[red]"]))


def test_releases_are_named_where_there_are_several() -> None:
    other = group(group="envserver", release="other", deployment="other-envserver")
    rows = lines(replace(FLEET, groups=[*FLEET.groups, other]))
    assert [row[:3] for row in rows if row[0] == "envserver"] == [
        ["envserver", "of", "kb"],
        ["envserver", "of", "other"],
    ]


def test_on_a_low_terminal_troubled_pods_come_first() -> None:
    many = group(*(replace(SERVING, name=f"kb-envserver-a{i}") for i in range(1000)), BROKEN)
    rows = lines(replace(FLEET, groups=[many]), height=12)
    assert len(rows) <= 12
    names = [row[0] for row in rows if row[0].startswith("kb-envserver")]
    assert names[0] == "kb-envserver-b"
    assert [f"{1001 - len(names):,}", "more"] in rows


def test_a_narrow_terminal_goes_without_some_columns_and_folds_nothing() -> None:
    (_, titles, *rows) = lines(FLEET, width=75)
    assert titles == ["name", "status", "restarts", "streams", "steps/s"]
    assert rows[-2] == ["kb-envserver-b", "CrashLoopBackOff", "7", "-", "-"]


def test_sums_leave_out_pods_that_were_not_read() -> None:
    assert (FLEET.groups[0].streams, FLEET.groups[0].steps_per_second) == (2, 1200.0)
    silent = group(BROKEN)
    assert (silent.streams, silent.steps_per_second) == (None, None)


def test_json_has_every_value_and_null_where_it_is_unknown() -> None:
    result = json.loads(json.dumps(as_json(FLEET)))
    assert result["namespace"] == "train" and result["notes"] == ["something is odd"]
    (learner,), (envserver,) = result["learners"], result["groups"]
    assert (learner["step"], learner["total_steps"], learner["streams"]) == (1000, 50_000, 2)
    assert (envserver["desired"], envserver["ready"], envserver["streams"]) == (2, 1, 2)
    assert envserver["pods"][1] == {
        "pod": "kb-envserver-b",
        "release": "kb",
        "node": "node1",
        "status": "CrashLoopBackOff",
        "problem": "",
        "ready": False,
        "restarts": 7,
        "last_exit": "OOMKilled",
        "age_s": 90,
        "streams": None,
        "steps_per_second": None,
    }


def test_ages_have_one_unit() -> None:
    assert [age_text(age_s) for age_s in (0.4, 119, 120, 7199, 7200, 172_799, 172_800)] == [
        "0s", "119s", "2m", "119m", "2h", "47h", "2d",
    ]  # fmt: skip
