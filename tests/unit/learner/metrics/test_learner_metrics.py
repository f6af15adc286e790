"""Prometheus receives the numbers of the pool and of the training."""

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from kubebeast_common.histogram import SecondsHistogram
from kubebeast_common.metrics import COUNTER, HISTOGRAM, Row, sample_names
from kubebeast_learner.metrics import ROWS, make_registry
from kubebeast_learner.metrics.actors import ACTORS
from kubebeast_learner.metrics.training import TRAINING
from kubebeast_learner.run.snapshot import Snapshot, TaskStats
from kubebeast_learner.run.stats import RunStats
from kubebeast_learner.run.task_returns import TaskReturn
from kubebeast_learner.training.monitor import Monitor
from tests.unit.learner.run.test_run_stats import UPDATE, Episode, pool
from tests.unit.learner.training.test_progress import RUNNING, START
from tests.unit.native.native_client import make_pool

TASK_VALUES = {"task_episodes", "task_returns", "task_steps"}


def sources(table: tuple[Row, ...], *, histograms: bool) -> list[str]:
    rows = [row for row in table if (row.family is HISTOGRAM) == histograms]
    return [source for row in rows for source in ([row.source] if isinstance(row.source, str) else row.source.values())]


STATS = {source: number for number, source in enumerate(sources(ACTORS, histograms=False)) if source not in TASK_VALUES}


class Actors:
    """Returns the given values."""

    def __init__(self, stats: Mapping[str, int] | None = None, tasks: Mapping[str, TaskReturn] | None = None) -> None:
        self._stats, self._tasks = stats or {}, tasks or {}

    def stats(self) -> Mapping[str, int]:
        return self._stats

    def histograms(self) -> dict[str, Any]:
        seconds = SecondsHistogram()
        seconds.observe(0.02)
        return dict.fromkeys(sources(ACTORS, histograms=True), seconds)

    def task_returns(self) -> Mapping[str, TaskReturn]:
        return self._tasks


def text_of(actors: Actors, snapshot: Snapshot | None = None, run_id: str = "pong") -> str:
    monitor = Monitor()
    monitor.snapshot = snapshot
    monitor.phases.seconds["forward"].observe(0.5)
    return generate_latest(make_registry(actors, monitor, run_id)).decode()


def scrape(actors: Actors, snapshot: Snapshot | None = None) -> dict[str, float]:
    """Returns samples by name and label values, without those of the process."""
    return {
        "/".join([sample.name, *sample.labels.values()]): sample.value
        for family in text_string_to_metric_families(text_of(actors, snapshot))
        for sample in family.samples
        if sample.name.startswith("kubebeast_")
    }


def test_every_number_of_the_pool_is_told_once() -> None:
    samples = scrape(Actors(STATS))
    names = {name for row in ACTORS if row.family is not HISTOGRAM for name in sample_names(row)}
    told = [value for key, value in samples.items() if key.partition("/")[0] in names]
    assert sorted(told) == sorted(STATS.values())
    assert samples["kubebeast_steps_total/dropped_stale"] == STATS["steps_dropped_stale"]
    assert samples["kubebeast_streams_ended_total/disconnect"] == STATS["streams_ended_disconnect"]
    assert samples["kubebeast_inference_flushes_total/full"] == STATS["inference_flush_ready"]
    assert samples["kubebeast_streams"] == STATS["streams"]


def test_the_pool_has_every_number_and_every_histogram_that_it_is_asked_for() -> None:
    pool = make_pool()
    assert STATS.keys() - {"restarts", "inference_threads"} <= pool.stats().keys()
    assert sorted(sources(ACTORS, histograms=True)) == sorted(pool.histograms())


def test_books_balance_in_what_is_told() -> None:
    parts = {"delivered": 70, "dropped_partial": 3, "dropped_stale": 20, "dropped_close": 2}
    stats = {f"steps_{name}": count for name, count in parts.items()} | {"steps_in_flight": 5, "steps_sampled": 100}
    samples = scrape(Actors(stats))
    told = sum(samples[f"kubebeast_steps_total/{name}"] for name in parts)
    assert samples["kubebeast_steps_total/sampled"] == told + samples["kubebeast_steps_in_flight"] == 100


def test_histograms_are_cumulative_and_end_above_every_bound() -> None:
    samples = scrape(Actors())
    assert samples["kubebeast_inference_queue_wait_seconds_bucket/0.01"] == 0
    assert samples["kubebeast_inference_queue_wait_seconds_bucket/0.025"] == 1
    assert samples["kubebeast_inference_queue_wait_seconds_bucket/+Inf"] == 1
    assert samples["kubebeast_inference_queue_wait_seconds_count"] == 1
    assert samples["kubebeast_inference_queue_wait_seconds_sum"] == 0.02
    assert samples["kubebeast_update_seconds_sum/forward"] == 0.5
    assert samples["kubebeast_update_seconds_count/backward"] == 0


def test_the_training_is_told_of_by_its_newest_snapshot() -> None:
    samples = scrape(Actors(), replace(RUNNING, process_updates=12, num_updates=312, checkpoint_age_s=7.5))
    assert samples["kubebeast_learner_step"] == 50_000
    assert samples["kubebeast_learner_steps_per_second"] == 2345.6
    assert (samples["kubebeast_updates_total"], samples["kubebeast_run_updates"]) == (12, 312)
    assert samples["kubebeast_policy_lag_updates"] == 1.25
    assert samples["kubebeast_policy_version"] == 312
    assert samples["kubebeast_loss/baseline"] == 2.0
    assert samples["kubebeast_rho_clipped_ratio"] == 0.25
    assert samples["kubebeast_episode_return_mean"] == -12.345
    assert samples["kubebeast_checkpoint_age_seconds"] == 7.5


def test_numbers_of_infos_have_their_keys_as_labels() -> None:
    samples = scrape(Actors(), replace(RUNNING, infos={"success": 0.25, "found/wood": None}))
    assert samples["kubebeast_episode_info_mean/success"] == 0.25
    assert "kubebeast_episode_info_mean/found/wood" not in samples


def test_numbers_of_the_curriculum_have_their_names_as_labels() -> None:
    samples = scrape(Actors(), replace(RUNNING, curriculum={"mean_return": 0.5}))
    assert samples["kubebeast_curriculum/mean_return"] == 0.5


def test_counters_of_a_process_that_resumes_begin_at_zero() -> None:
    earlier = RunStats(total_steps=1000)
    for _ in range(5):
        earlier.add_update(UPDATE)
        earlier.add_update(replace(UPDATE, skipped=True))
        earlier.add_episodes([Episode(1.0)])
    resumed = RunStats(total_steps=1000)
    resumed.load_state_dict(earlier.state_dict(), step=500, env_id="Pong")
    samples = scrape(Actors(), resumed.snapshot(pool()))
    for name in ("updates", "updates_skipped", "episodes"):
        assert (samples[f"kubebeast_{name}_total"], samples[f"kubebeast_run_{name}"]) == (0, 5)


def test_tasks_are_told_apart() -> None:
    samples = scrape(Actors(tasks={"Pong": TaskReturn(7, 19.5), "Breakout": TaskReturn(2, 400.0)}))
    assert samples["kubebeast_task_episodes_total/Pong"] == 7
    assert samples["kubebeast_task_episode_return_mean/Breakout"] == 400.0
    trained = replace(RUNNING, tasks={"Pong": TaskStats(900, 100, 19.5), "Breakout": TaskStats(700, 50, None)})
    steps = scrape(Actors(), trained)
    assert (steps["kubebeast_task_steps_total/Pong"], steps["kubebeast_task_steps_total/Breakout"]) == (100, 50)


def test_a_name_that_a_peer_made_up_cannot_break_the_page() -> None:
    hostile = 'x"} 1\nkubebeast_streams 9\\'
    samples = scrape(Actors(tasks={hostile: TaskReturn(1, 0.0)}))
    assert samples[f"kubebeast_task_episodes_total/{hostile}"] == 1
    assert "kubebeast_streams" not in samples


def test_what_is_not_known_is_left_out() -> None:
    samples = scrape(Actors(), START)
    assert samples["kubebeast_learner_step"] == 0
    assert "kubebeast_policy_lag_updates" not in samples
    assert "kubebeast_learner_step" not in scrape(Actors())


def test_the_run_and_what_runs_are_named() -> None:
    assert 'kubebeast_run_info{run_id="pong"} 1.0' in text_of(Actors())
    assert re.search(r'kubebeast_build_info\{.*version="\d', text_of(Actors()))


def test_names_and_help_follow_the_conventions() -> None:
    assert len({row.name for row in ROWS}) == len(ROWS)
    for row in ROWS:
        assert re.fullmatch(r"kubebeast_[a-z]+(_[a-z]+)*", row.name)
        assert row.help.endswith(".")
        assert not row.name.endswith("_total")  # the client adds it
        assert isinstance(row.source, str) or len(row.labels) == 1


def test_every_row_of_the_training_is_a_value_of_a_snapshot() -> None:
    files = {"run_free_bytes", "run_volume_bytes", "write_failures"}
    known = RUNNING.flat().keys() | TASK_VALUES | files
    known |= {"empty_shares", "loss_parts", "episode_infos", "curriculum", "league", "num_crashes"}
    known |= {"node_notice_failures"}
    assert [source for source in sources(TRAINING, histograms=False) if source not in known] == []


def test_files_that_cannot_be_written_and_room_for_them_are_told(tmp_path: Path) -> None:
    monitor = Monitor()
    monitor.note_files(tmp_path, {"logs.csv": 2, "out.log": 0})
    text = generate_latest(make_registry(Actors(), monitor, "pong")).decode()
    assert 'kubebeast_run_write_failures_total{file="logs.csv"} 2.0' in text
    assert 'kubebeast_run_write_failures_total{file="out.log"} 0.0' in text
    assert re.search(r"^kubebeast_run_free_bytes [\d.e+]+$", text, re.MULTILINE)
    monitor.note_files(tmp_path / "gone", {})
    assert "\nkubebeast_run_free_bytes " not in generate_latest(make_registry(Actors(), monitor, "pong")).decode()


@pytest.mark.parametrize("name", ["process_resident_memory_bytes", "process_open_fds"])
def test_the_process_is_told_of_too(name: str) -> None:
    assert f"\n{name} " in text_of(Actors())


def test_only_counters_are_called_total() -> None:
    counters = {f"{row.name}_total" for row in ROWS if row.family is COUNTER}
    told = re.findall(r"^# TYPE (kubebeast_\w+) counter$", text_of(Actors(STATS), RUNNING), flags=re.MULTILINE)
    assert set(told) == counters
