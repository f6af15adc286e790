"""`kubebeast top` computes its view from two looks at a learner."""

import json
import math
import re
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import pytest

from kubebeast_observe.scrape import parse_metrics, quantiles
from kubebeast_observe.top.poller import Look, Looks
from kubebeast_observe.top.ranks import parse_ranks
from kubebeast_observe.top.rows import EnvServer, make_rows, sorted_rows
from kubebeast_observe.top.streams_json import parse_streams
from kubebeast_observe.top.view import View, make_view
from tests.unit.observe.fleet.fleet_objects import pod_state
from tests.unit.observe.top.top_learner import metrics, old_metrics, ranks_page, stream, streams_page


def scrape(
    metrics_text: str, *streams: dict[str, Any], taken_at_s: float = 0.0, ranks: Sequence[dict[str, Any]] = ()
) -> Look:
    return Look(
        taken_at_s=taken_at_s,
        source="here",
        metrics=parse_metrics(metrics_text),
        streams=parse_streams(streams_page(*streams)),
        ranks=parse_ranks(ranks_page(*ranks)),
        pods={},
    )


def view_of(before: Look | None, now: Look) -> View:
    return make_view(Looks(before, now, ""))


def rows_of(before: list[dict[str, Any]], now: list[dict[str, Any]], elapsed_s: float = 2.0) -> dict[str, EnvServer]:
    earlier, newest = parse_streams(streams_page(*before)), parse_streams(streams_page(*now))
    return {row.name: row for row in make_rows(earlier, newest, elapsed_s, {})}


def test_rates_and_quantiles_are_over_the_window() -> None:
    before = scrape(metrics(batches=100), taken_at_s=10.0)
    view = view_of(before, scrape(metrics(step=3000, batches=300), taken_at_s=12.0))
    assert (view.run_id, view.step, view.total_steps, view.steps_per_second) == ("run-1", 3000, 5000, 500.0)
    assert view.eta_s == 4.0 and view.rows_per_batch == 12.0
    assert view.inference_queue_wait.p50_s == pytest.approx(0.0055)
    assert view.inference_model.p99_s == pytest.approx(0.00099)
    assert view.verdict.code == "fleet" and view.steps_dropped == 42
    assert view.troubles == {"updates that were not finite": 1}


def test_connections_without_a_stream_are_a_trouble_unless_they_were_probes() -> None:
    refused = "# TYPE kubebeast_connections_refused counter\n" + "".join(
        f'kubebeast_connections_refused_total{{reason="{reason}"}} {count}\n'
        for reason, count in {"closed": 500, "plaintext": 2, "no_call": 1}.items()
    )
    assert view_of(None, scrape(metrics() + refused)).troubles["connections without a stream"] == 3


def test_the_cpu_load_is_what_was_used_of_what_there_is() -> None:
    before = scrape(metrics(cpu_used_s=100.0))
    view = view_of(before, scrape(metrics(cpu_used_s=107.0), taken_at_s=2.0))
    assert (view.cpu_busy_ratio, view.verdict.code) == (0.875, "cpu")
    assert view_of(None, scrape(metrics(cpu_used_s=107.0))).cpu_busy_ratio is None


def test_an_older_learner_leaves_values_unknown() -> None:
    view = view_of(scrape(old_metrics()), scrape(old_metrics(learner_step=1500), taken_at_s=2.0))
    assert view.steps_per_second == 250.0
    unknown = (view.starved_ratio, view.slots, view.rows_per_batch, view.steps_dropped, view.inference_model.p50_s)
    assert unknown == (None,) * 5
    assert (view.verdict.code, view.troubles, view.env_servers) == ("unknown", {}, [])


def test_one_of_several_learners_tells_the_same_numbers_with_its_rank_on_each() -> None:
    def of_rank(text: str) -> str:
        labelled = re.sub(r"^(kubebeast_\w+)\{", r'\1{rank="1",', text, flags=re.MULTILINE)
        return re.sub(r"^(kubebeast_\w+) ", r'\1{rank="1"} ', labelled, flags=re.MULTILINE)

    alone, others = ([scrape(made(metrics(batches=n)), taken_at_s=n) for n in (100, 300)] for made in (str, of_rank))
    assert 'kubebeast_learner_step{rank="1"} 1000' in of_rank(metrics())
    assert view_of(*others) == view_of(*alone)


def test_several_learners_stand_in_the_order_of_their_ranks() -> None:
    view = view_of(None, scrape(metrics(), ranks=[{"sps": 100.5}, {"streams": 0, "empty_shares": 7}]))
    assert [(row.streams, row.sps, row.empty_shares) for row in view.ranks] == [(2, 100.5, 0), (0, 250.0, 7)]


HELD_BACK = metrics(learner_starved_ratio=0.0, streams_parked=2.0)
"""Metrics of a learner with waiting streams: if it were alone, its fleet would be too large."""


def updates(count: float) -> str:
    return f"# TYPE kubebeast_updates counter\nkubebeast_updates_total {count}\n"


def test_a_rank_without_streams_asks_for_more_env_servers_though_another_holds_its_own_back() -> None:
    alone = view_of(None, scrape(HELD_BACK))
    view = view_of(None, scrape(HELD_BACK, ranks=[{"streams": 3}, {"streams": 0}]))
    assert alone.verdict.code == "learner" and alone.demand_ratio == 0.0
    assert (view.verdict.code, view.verdict.text) == ("ranks", "rank 1 has too few streams")
    assert view.demand_ratio == 2.0


def test_the_rank_that_is_looked_at_speaks_for_all_of_them() -> None:
    idle = metrics(streams=0.0, learner_starved_ratio=1.0)
    assert view_of(None, scrape(idle, ranks=[{"streams": 3}, {"streams": 0}])).verdict.code == "ranks"
    assert view_of(None, scrape(idle, ranks=[{"streams": 0}, {"streams": 0}])).verdict.code == "no-streams"


@pytest.mark.parametrize(("num_empty", "code"), [(80, "ranks"), (20, "learner")])
def test_a_rank_with_streams_that_rarely_fill_a_batch_is_starved_too(num_empty: int, code: str) -> None:
    before = scrape(HELD_BACK + updates(1000), ranks=[{}, {"empty_shares": 500}])
    now = scrape(HELD_BACK + updates(1100), ranks=[{}, {"empty_shares": 500 + num_empty}], taken_at_s=5.0)
    assert view_of(before, now).verdict.code == code


@pytest.mark.parametrize("ranks", [{"sps": "fast"}, {"streams": -1}, {"empty_shares": None}])
def test_a_learner_that_cannot_be_read_is_named(ranks: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=rf"ranks\[1\].{next(iter(ranks))} is not a finite number"):
        parse_ranks(ranks_page({}, ranks))


def test_a_learner_that_started_anew_has_no_rates() -> None:
    view = view_of(scrape(metrics(batches=300)), scrape(metrics(batches=10), taken_at_s=1.0))
    assert view.rows_per_batch is None and view.inference_queue_wait.p50_s is None


def test_gpus_are_told_apart() -> None:
    gpus = (
        'kubebeast_gpu_busy_ratio{device="0"} 0.5\nkubebeast_gpu_busy_ratio{device="1"} 1.0\n'
        'kubebeast_gpu_memory_used_bytes{device="0"} 1024\n'
    )
    first, second = view_of(None, scrape(old_metrics() + gpus)).gpus
    assert (first.busy_ratio, first.memory_used_bytes) == (0.5, 1024)
    assert (second.device, second.memory_used_bytes) == ("1", None)


@pytest.mark.parametrize(
    ("free", "size", "checkpoint", "is_noted"),
    [
        (9_000_000, 10**12, 1_000_000, True),
        (200 << 20, 10**12, 1_000_000, True),
        (200 << 20, 1 << 30, 1_000_000, False),
        (300 << 20, 10**12, 1_000_000, False),
    ],
    ids=["a few checkpoints", "nearly nothing", "a fifth of a small volume", "enough"],
)
def test_a_volume_that_is_almost_full_is_noted(free: int, size: int, checkpoint: int, is_noted: bool) -> None:
    view = view_of(
        None,
        scrape(old_metrics(run_free_bytes=free, run_volume_bytes=size, checkpoint_bytes=checkpoint)),
    )

    assert view.run_free_bytes == free and view.run_volume_bytes == size
    assert [note for note in view.notes if "almost full" in note] == view.notes[: int(is_noted)]


def test_numbers_that_json_has_no_word_for_are_unknown() -> None:
    view = view_of(None, scrape(old_metrics(episode_return_mean=math.nan, learner_starved_ratio=math.inf)))
    assert (view.episode_return_mean, view.starved_ratio) == (None, None)
    assert json.loads(json.dumps(asdict(view), allow_nan=False))["source"] == "here"


def test_a_quantile_above_the_last_bound_is_that_bound() -> None:
    assert quantiles({}, {0.1: 0, math.inf: 5}, (0.5,)) == [0.1]
    assert quantiles({}, {math.inf: 5}, (0.5,)) == [None]
    assert quantiles({0.1: 3, math.inf: 3}, {0.1: 3, math.inf: 3}, (0.5,)) == [None]


def test_an_env_server_is_the_sum_of_its_streams() -> None:
    before = [stream(peer="a"), stream(peer="b")]
    now = [
        stream(peer="a", steps=8800, env_s=21.0, action_s=10.5, connected_s=102.0),
        stream(peer="b", steps=8400, env_s=21.0, action_s=10.0, connected_s=102.0, parked_s=1.0, phase="parked"),
    ]
    (row,) = rows_of(before, now).values()
    assert (row.num_streams, row.envs, row.steps_per_second, row.age_s) == (2, 16, 600.0, 102.0)
    assert row.env_s == pytest.approx((0.01 + 0.02) / 2) and row.action_wait_s == pytest.approx(0.0025)
    assert (row.parked_ratio, row.phase) == (0.25, "1 env, 1 parked")
    assert [part.name for part in row.streams] == ["a", "b"]


def test_a_step_that_outlasts_the_window_counts_with_what_it_took_so_far() -> None:
    stuck = rows_of([stream()], [stream(env_s=22.0, connected_s=102.0)])["kb-envserver-a"]
    parked = rows_of([stream(phase="parked")], [stream(phase="parked", parked_s=2.0, connected_s=102.0)])
    assert (stuck.env_s, stuck.steps_per_second) == (2.0, 0.0)
    assert (parked["kb-envserver-a"].env_s, parked["kb-envserver-a"].parked_ratio) == (None, 1.0)


def test_a_stream_that_is_new_has_no_rates() -> None:
    row = rows_of([stream()], [stream(instance_id="2", steps=10, connected_s=1.0)])["kb-envserver-a"]
    assert (row.steps_per_second, row.env_s, row.parked_ratio, row.age_s) == (None, None, None, 1.0)


def test_environments_far_above_the_median_are_slow() -> None:
    names = [f"pod-{i}" for i in range(5)]
    now = [stream(name, steps=8800, env_s=24.0 if name == "pod-3" else 20.1, connected_s=102.0) for name in names]
    rows = rows_of([stream(name) for name in names], now)
    assert [name for name, row in rows.items() if row.is_slow] == ["pod-3"]


def test_rows_are_sorted_and_what_is_unknown_comes_last() -> None:
    before = [stream("b"), stream("a"), stream("slow")]
    now = [
        stream("b", steps=9600, env_s=20.1, connected_s=102.0),
        stream("a", steps=8800, env_s=20.1, action_s=11.0, connected_s=102.0),
        stream("slow", steps=8008, env_s=22.0, connected_s=102.0),
        stream("new", connected_s=500.0),
    ]
    rows = rows_of(before, now).values()
    assert [row.name for row in sorted_rows(rows, "env")] == ["slow", "a", "b", "new"]
    assert [row.name for row in sorted_rows(rows, "steps")] == ["b", "a", "slow", "new"]
    assert sorted_rows(rows, "wait")[0].name == "a" and sorted_rows(rows, "age")[0].name == "new"
    assert [row.name for row in sorted_rows(rows, "name")] == ["a", "b", "new", "slow"]


def test_pods_without_a_stream_have_a_row_that_says_why() -> None:
    pods = {
        "kb-envserver-a": pod_state("kb-envserver-a", restarts=3),
        "kb-envserver-b": pod_state("kb-envserver-b", status="CrashLoopBackOff", is_ready=False),
    }
    serving, broken = make_rows((), parse_streams(streams_page(stream())), 0.0, pods)
    assert (serving.pod, serving.node, serving.restarts) == ("kb-envserver-a", "node1", 3)
    assert (broken.name, broken.num_streams, broken.phase) == ("kb-envserver-b", 0, "CrashLoopBackOff")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("<html>", "/streams is not JSON"),
        ("[" * 100_000, "/streams is nested too deeply"),
        ("[]", "/streams has no list named streams"),
        ('{"streams": [1]}', "streams[0] is not an object"),
        (streams_page(stream(), stream(steps="many")), "streams[1].steps is not a finite number"),
        (streams_page(stream(env_s=math.nan)), "streams[0].env_s is not a finite number"),
        (streams_page(stream(num_envs=True)), "streams[0].num_envs is not a finite number"),
        (streams_page(stream(env_id=None)), "streams[0].env_id is not a text"),
    ],
)
def test_what_is_wrong_with_a_list_of_streams_is_named(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason.replace("[", r"\[").replace("]", r"\]")):
        parse_streams(text)


def test_texts_of_peers_are_printable_and_short() -> None:
    (reading,) = parse_streams(streams_page(stream("\x1b[31m" + "x" * 1000)))
    assert reading.env_server_id.isprintable() and len(reading.env_server_id) == 253


def task_metrics(*steps: int) -> str:
    names = [f"Task-v{index}" for index in range(len(steps))]
    lines = [f'kubebeast_task_steps_total{{env_id="{name}"}} {n}\n' for name, n in zip(names, steps, strict=True)]
    returns = [f'kubebeast_task_episode_return_mean{{env_id="{name}"}} {7 * n}\n' for n, name in enumerate(names)]
    return "# TYPE kubebeast_task_steps counter\n" + "".join(lines) + "".join(returns)


def test_tasks_have_their_speed_share_and_return() -> None:
    before = scrape(metrics() + task_metrics(100, 500), taken_at_s=10.0)
    view = view_of(before, scrape(metrics() + task_metrics(400, 600), taken_at_s=12.0))
    assert [asdict(task) for task in view.tasks] == [
        {"env_id": "Task-v0", "steps_per_second": 150.0, "step_share": 0.75, "episode_return_mean": 0.0},
        {"env_id": "Task-v1", "steps_per_second": 50.0, "step_share": 0.25, "episode_return_mean": 7.0},
    ]
    (first, _) = view_of(None, scrape(metrics() + task_metrics(400, 600))).tasks
    assert (first.steps_per_second, first.step_share) == (None, None)
    assert view_of(None, scrape(metrics())).tasks == []
