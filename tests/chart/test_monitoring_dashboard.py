"""The dashboard: what it asks of which release, and whether it says what good looks like."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from dashboard.queries import queries
from tests.chart.prometheus import METRIC, dashboard, known_metrics, panels, promtool

VARIABLES = {
    "namespace": "training",
    "job": "demo",
    "env_server_price": "0.05",
    "learner_price": "1",
    "__rate_interval": "5m",
}
MATCHERS = 'namespace="training", job="demo"'


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
    everything = dashboard()["panels"]
    cells = [
        (panel["gridPos"]["x"] + x, panel["gridPos"]["y"] + y)
        for panel in everything
        for x in range(panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["h"])
    ]

    assert len({panel["id"] for panel in everything}) == len(everything)
    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) < 24


def test_every_line_of_panels_should_fill_the_width() -> None:
    widths: dict[int, int] = {}
    for panel in panels():
        widths[panel["gridPos"]["y"]] = widths.get(panel["gridPos"]["y"], 0) + panel["gridPos"]["w"]

    assert {*widths.values()} == {24}


def test_a_table_should_have_a_column_for_each_query_and_the_blamed_pod_first() -> None:
    (table,) = [panel for panel in panels() if panel["type"] == "table"]
    columns = table["transformations"][1]["options"]["renameByName"]

    assert [*columns.values()] == [target["legendFormat"] for target in table["targets"]]
    assert table["options"]["sortBy"] == [{"displayName": "step", "desc": True}]
    assert all("pod" in target["expr"] and target["instant"] for target in table["targets"])


@pytest.mark.parametrize(
    ("verdict", "changes"),
    [
        ("Balanced", {}),
        ("Finished", {"learner_step": 100, "streams": 0}),
        ("No env-server plays", {"streams": 0, "learner_starved_ratio": 1}),
        ("Inference is the bottleneck", {"learner_starved_ratio": 0.6, "inference_busy_ratio": 0.95}),
        ("Fleet starves the GPU", {"learner_starved_ratio": 0.6}),
        ("GPU starves the fleet", {"streams_parked": 3}),
    ],
)
def test_the_verdict_should_name_what_holds_the_others_up(
    verdict: str, changes: dict[str, float], tmp_path: Path
) -> None:
    healthy = {
        "learner_step": 10,
        "learner_total_steps": 100,
        "streams": 4,
        "streams_parked": 0,
        "learner_starved_ratio": 0.1,
        "inference_busy_ratio": 0.4,
    }
    (text,) = panel("Verdict")["fieldConfig"]["defaults"]["mappings"]
    code = {option["text"]: int(value) for value, option in text["options"].items()}[verdict]
    (query,) = [query for query in queries(dashboard(), VARIABLES) if query.panel == "Verdict"]
    labels = "{" + MATCHERS + "}"
    test = {
        "interval": "1m",
        "input_series": [
            {"series": f"kubebeast_{name}{labels}", "values": f"{value}x10"}
            for name, value in {**healthy, **changes}.items()
        ],
        "promql_expr_test": [
            {"expr": query.expr, "eval_time": "8m", "exp_samples": [{"labels": labels, "value": code}]}
        ],
    }
    (tmp_path / "verdict.yaml").write_text(yaml.safe_dump({"tests": [test]}))

    promtool("test", "rules", str(tmp_path / "verdict.yaml"))
