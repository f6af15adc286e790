"""The dashboard queries one release, existing metrics only, and describes good values of each panel."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from dashboard.grafana import Panel, Row
from dashboard.model import placed
from dashboard.verdict import TEXTS
from kubebeast_common.pool.demand import demand_ratio, make_loads
from kubebeast_observe.top.verdict import EMPTY_SHARES, judge
from tests.chart.prometheus import METRIC, dashboard, known_metrics, panels, promtool
from tests.dashboard_queries import queries

VARIABLES = {
    "cluster": ".*",
    "namespace": "training",
    "job": "demo",
    "kubebeast_run": ".*",
    "env_server_price": "0.05",
    "learner_price": "1",
    "__rate_interval": "5m",
}
MATCHERS = 'cluster=~".*", namespace=~"training", job=~"demo"'
LABELS = '{namespace="training", job="demo"}'


def panel(title: str) -> dict[str, Any]:
    (found,) = [panel for panel in panels() if panel["title"] == title]
    return found


def test_queries_should_come_with_the_title_of_their_panel_and_without_variables() -> None:
    found = queries(dashboard(), VARIABLES)

    assert {query.panel for query in found} == {panel["title"] for panel in panels()}
    assert len(found) == sum(len(panel["targets"]) for panel in panels())
    assert not [query for query in found if "$" in query.expr]


def test_a_variable_without_a_value_should_be_refused_by_name() -> None:
    with pytest.raises(KeyError, match="learner_price"):
        queries(dashboard(), {name: value for name, value in VARIABLES.items() if name != "learner_price"})


def test_every_query_should_be_promql_of_one_release(tmp_path: Path) -> None:
    found = queries(dashboard(), VARIABLES)
    recorded = [{"record": f"query:{index}", "expr": query.expr} for index, query in enumerate(found)]
    (tmp_path / "queries.yaml").write_text(yaml.safe_dump({"groups": [{"name": "all", "rules": recorded}]}))

    promtool("check", "rules", str(tmp_path / "queries.yaml"))
    for query in found:
        assert query.expr.count(MATCHERS) == len(METRIC.findall(query.expr)) + query.expr.count("ALERTS"), query


def test_a_run_of_a_sweep_should_select_its_learner_and_all_env_servers() -> None:
    recorded = ("kubebeast_learner_demand_ratio", "kubebeast_streams_missed", "kubebeast_task_return_")
    of_all = ("kubebeast_broker_", "kubebeast_envserver_", "kubebeast_eval_", "process_", *recorded)
    for query in queries(dashboard(), {**VARIABLES, "kubebeast_run": "000-seed1"}):
        learners = [name for name in METRIC.findall(query.expr) if not name.startswith(of_all)]
        assert query.expr.count('kubebeast_run=~"000-seed1"') == len(learners), query


def test_the_dashboard_should_ask_for_metrics_that_exist_only() -> None:
    asked = {name for query in queries(dashboard(), VARIABLES) for name in METRIC.findall(query.expr)}

    assert len(asked) > 60
    assert asked - known_metrics() == set()


def test_every_panel_should_say_what_good_looks_like_in_which_unit() -> None:
    for panel in panels():
        assert panel["description"].endswith((".", "?")), panel["title"]
        assert panel["fieldConfig"]["defaults"]["unit"], panel["title"]
        assert all(target["legendFormat"] for target in panel["targets"]), panel["title"]


def test_panels_should_have_ids_of_their_own_and_not_overlap() -> None:
    rows = [panel for panel in dashboard()["panels"] if panel["type"] == "row"]
    everything = [*rows, *panels()]

    assert len({panel["id"] for panel in everything}) == len(everything)
    for shown in (dashboard()["panels"], *(row["panels"] for row in rows)):
        cells = [
            (panel["gridPos"]["x"] + x, panel["gridPos"]["y"] + y)
            for panel in shown
            for x in range(panel["gridPos"]["w"])
            for y in range(panel["gridPos"]["h"])
        ]
        assert len(cells) == len(set(cells))
        assert all(x < 24 for x, _ in cells)


def test_every_line_of_panels_should_fill_the_width() -> None:
    for shown in (dashboard()["panels"], *(panel.get("panels", []) for panel in dashboard()["panels"])):
        widths: dict[int, int] = {}
        for panel in shown:
            widths[panel["gridPos"]["y"]] = widths.get(panel["gridPos"]["y"], 0) + panel["gridPos"]["w"]
        assert {*widths.values()} <= {24}


@pytest.mark.parametrize(("widths", "place"), [([8, 8], "at the end"), ([8, 8, 12, 12], "before 'panel 2'")])
def test_a_line_of_panels_that_leaves_a_gap_should_be_refused(widths: list[int], place: str) -> None:
    panels = {f"panel {i}": Panel(good="Good: 1.", queries={"": "up"}, width=width) for i, width in enumerate(widths)}

    with pytest.raises(ValueError, match=f"row 'Data': the line {place} has a width of 16, it must be 24"):
        list(placed([Row("Data", panels)], str))


def test_only_what_is_looked_at_first_should_be_unfolded() -> None:
    rows = [panel for panel in dashboard()["panels"] if panel["type"] == "row"]

    assert [row["title"] for row in rows if not row["collapsed"]] == ["State of the run", "Learning"]
    assert all(bool(row["panels"]) == row["collapsed"] for row in rows)


def test_the_first_row_should_say_how_fast_how_good_who_waits_and_what_it_costs() -> None:
    first = [panel["title"] for panel in dashboard()["panels"][1:]]
    first = first[: first.index("Learning")]

    assert {"Verdict", "Speed", "Return", "Alerts that fire", "Dollars an hour", "A million steps cost"} <= {*first}
    assert {"Learner waits for the fleet", "Fleet waits for the learner", "Inference at work"} <= {*first}


def test_several_runs_should_be_told_apart_by_their_names() -> None:
    variables = {variable["name"]: variable for variable in dashboard()["templating"]["list"]}

    assert all(variables[name]["multi"] and variables[name]["includeAll"] for name in ("cluster", "namespace", "job"))
    for panel in panels():
        for target in panel["targets"]:
            aggregations = re.findall(r"\b(?:sum|max|min|avg|count|quantile) by \(([^)]*)\)", target["expr"])
            assert all("namespace, job" in labels for labels in aggregations), panel["title"]
            assert panel["type"] == "table" or target["legendFormat"].startswith("{{job}} "), panel["title"]


def test_starts_of_the_learner_should_be_marked() -> None:
    (marks,) = dashboard()["annotations"]["list"]

    assert "kubebeast_learner_start_time_seconds" in marks["expr"] and marks["useValueForTime"]
    assert marks["enable"] is True


def test_a_table_should_have_a_column_for_each_query_and_the_blamed_pod_first() -> None:
    (table,) = [panel for panel in panels() if panel["type"] == "table"]
    columns = table["transformations"][1]["options"]["renameByName"]

    assert [*columns.values()] == [target["legendFormat"] for target in table["targets"]]
    assert table["options"]["sortBy"] == [{"displayName": "step", "desc": True}]
    assert all("pod" in target["expr"] and target["instant"] for target in table["targets"])


HEALTHY = {
    "learner_step": 10.0,
    "learner_total_steps": 100.0,
    "streams": 4.0,
    "streams_parked": 0.0,
    "learner_starved_ratio": 0.1,
    "inference_busy_ratio": 0.4,
    "policy_lag_updates": 2.0,
    "machine_cpus": 2.0,
}
CPU_BUSY = 0.5
CASES: dict[str, dict[str, float]] = {
    "healthy": {},
    "finished": {"learner_step": 100, "streams": 0},
    "nobody plays": {"streams": 0, "learner_starved_ratio": 1},
    "fleet too small": {"learner_starved_ratio": 0.6},
    "inference-bound": {"learner_starved_ratio": 0.5, "inference_busy_ratio": 1},
    "inference nearly": {"learner_starved_ratio": 0.6, "inference_busy_ratio": 0.8},
    "overloaded": {"learner_starved_ratio": 0.5, "cpu": 1, "streams_parked": 1.08, "policy_lag_updates": 94},
    "learner-bound": {"learner_starved_ratio": 0.02, "streams_parked": 3},
    "old data": {"policy_lag_updates": 30},
    "old data and waiting": {"learner_starved_ratio": 0.5, "policy_lag_updates": 40},
    "both wait": {"learner_starved_ratio": 0.4, "streams_parked": 1.2},
    "a rank without streams": {"streams_parked": 3, "empty_shares_of_rank_1": 1.0},
    "a rank with few streams": {"learner_starved_ratio": 0.6, "empty_shares_of_rank_1": 0.6},
    "ranks with a share": {"streams_parked": 3, "learner_starved_ratio": 0.02, "empty_shares_of_rank_1": 0.1},
    "ranks at the end": {"learner_step": 100, "empty_shares_of_rank_1": 1.0},
}


def shown_by_top(values: dict[str, float]) -> tuple[str, float]:
    """Returns the verdict's text and the demand ratio of the model in `kubebeast top`."""
    loads = make_loads(
        starved_ratio=values["learner_starved_ratio"],
        inference_busy_ratio=values["inference_busy_ratio"],
        cpu_busy_ratio=values.get("cpu", CPU_BUSY),
        policy_lag_updates=values["policy_lag_updates"],
    )
    parked = values["streams_parked"] / max(1.0, values["streams"])
    finished = values["learner_step"] >= values["learner_total_steps"]
    starved = [1] if values.get("empty_shares_of_rank_1", 0.0) > EMPTY_SHARES else []
    verdict = judge(
        is_finished=finished, streams=values["streams"], loads=loads, parked_ratio=parked, starved_ranks=starved
    )
    return verdict.code, 0.0 if finished else demand_ratio(loads, parked, 2.0 if starved else 0.0)


def series_of(values: dict[str, float]) -> list[dict[str, str]]:
    """Returns series of ten minutes."""
    cpu_s = values.get("cpu", CPU_BUSY) * HEALTHY["machine_cpus"] * 60
    gauges = {name: f"{value}x10" for name, value in values.items() if name not in ("cpu", "empty_shares_of_rank_1")}
    series = gauges | {"machine_cpu_seconds_total": f"1000+{cpu_s}x10"}
    empty = [0.0, values["empty_shares_of_rank_1"]] if "empty_shares_of_rank_1" in values else []
    return [{"series": f"kubebeast_{name}{LABELS}", "values": text} for name, text in series.items()] + [
        {"series": f'kubebeast_{name}_total{{rank="{rank}",{LABELS[1:]}', "values": f"0+{growth}x10"}
        for rank, share in enumerate(empty)
        for name, growth in (("updates", 100), ("empty_shares", 100 * share))
    ]


def expect(tmp_path: Path, series: list[dict[str, str]], expected: list[tuple[str, dict[str, Any]]]) -> None:
    """Asserts with promtool that each expression has the sample at the end, or none."""
    tests = [{"expr": expr, "eval_time": "8m", "exp_samples": [sample] if sample else []} for expr, sample in expected]
    test = {"interval": "1m", "input_series": series, "promql_expr_test": tests}
    (tmp_path / "panels.yaml").write_text(yaml.safe_dump({"tests": [test]}))
    promtool("test", "rules", str(tmp_path / "panels.yaml"))


def queries_of(title: str) -> list[str]:
    return [query.expr for query in queries(dashboard(), VARIABLES) if query.panel == title]


@pytest.mark.parametrize("case", CASES)
def test_verdict_and_demand_should_be_those_of_kubebeast_top(case: str, tmp_path: Path) -> None:
    values = HEALTHY | CASES[case]
    code, ratio = shown_by_top(values)
    number = [*TEXTS].index(code)
    (asked,), (demanded,) = queries_of("Verdict"), queries_of("Fleets that could be used")

    expect(
        tmp_path,
        series_of(values),
        [
            (asked, {"labels": LABELS, "value": number}),
            (f"round({demanded}, 0.001)", {"labels": LABELS, "value": round(ratio, 3)}),
        ],
    )


def test_the_return_lost_should_be_a_share_of_best_and_worst(tmp_path: Path) -> None:
    task = '{env_id="Pong",' + LABELS[1:]
    values = {"return_best": 15, "return_worst": -5, "episode_return_mean": 7}
    series = [{"series": f"kubebeast_task_{name}{task}", "values": f"{value}x10"} for name, value in values.items()]
    (query,) = queries_of("Return lost since its best")

    expect(tmp_path, series, [(query, {"labels": task, "value": 0.4})])


def test_runs_of_one_name_in_two_clusters_should_both_be_shown(tmp_path: Path) -> None:
    tasks = [f'{{cluster="{cluster}",env_id="Pong",{LABELS[1:]}' for cluster in ("a", "b")]
    values = {"return_best": 15, "return_worst": -5, "episode_return_mean": 7}
    series = [
        {"series": f"kubebeast_task_{name}{task}", "values": f"{value}x10"}
        for task in tasks
        for name, value in values.items()
    ]
    (query,) = queries_of("Return lost since its best")

    expect(tmp_path, series, [(f"sum({query})", {"labels": "{}", "value": 0.8})])


def test_nothing_should_look_well_for_lack_of_data(tmp_path: Path) -> None:
    streams = [{"series": f"kubebeast_streams{LABELS}", "values": "4x10"}]
    judged = [panel for panel in panels() if panel["type"] == "stat" and panel["options"]["colorMode"] == "background"]

    assert len(judged) > 4
    expect(tmp_path, streams, [(expr, {}) for panel in judged for expr in queries_of(panel["title"])])


def test_a_cost_should_not_leave_out_env_servers_that_nobody_scrapes(tmp_path: Path) -> None:
    steps = {"series": f'kubebeast_steps_total{{outcome="delivered",{LABELS[1:]}', "values": "0+6000x10"}
    series = [{"series": f"kubebeast_streams{LABELS}", "values": "4x10"}, steps]
    costs = ("Dollars an hour", "A million steps cost", "Env-steps for a dollar")

    expect(tmp_path, series, [(expr, {}) for title in costs for expr in queries_of(title)])
    assert {panel(title)["fieldConfig"]["defaults"]["noValue"] for title in costs} == {"env-servers are not scraped"}


def test_a_learner_without_a_gpu_should_not_be_told_of_one() -> None:
    texts = [
        text["text"]
        for option in panel("Verdict")["fieldConfig"]["defaults"]["mappings"]
        for text in option["options"].values()
    ]

    assert texts and not [text for text in texts if "GPU" in text]
