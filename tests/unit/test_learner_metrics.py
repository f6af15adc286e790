"""What Prometheus reads is what the pool and the training say."""

import re
from dataclasses import replace

import pytest
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from kubebeast_learner.metrics import ACTORS, COUNTER, TRAINING, make_registry
from kubebeast_learner.run_stats import Snapshot
from tests.unit.native_client import make_pool
from tests.unit.test_progress import RUNNING, START

STATS = {
    source: number
    for number, source in enumerate(
        source for row in ACTORS for source in ([row.source] if isinstance(row.source, str) else row.source.values())
    )
}


def scrape(stats: dict[str, int], snapshot: Snapshot | None) -> dict[str, float]:
    """Samples by name and label value, without those of the process."""
    text = generate_latest(make_registry(lambda: stats, lambda: snapshot)).decode()
    return {
        "/".join([sample.name, *sample.labels.values()]): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name.startswith("kubebeast_")
    }


def test_every_number_of_the_pool_is_told_once() -> None:
    samples = scrape(STATS, None)
    assert sorted(samples.values()) == sorted(STATS.values())
    assert samples["kubebeast_steps_total/dropped_stale"] == STATS["steps_dropped_stale"]
    assert samples["kubebeast_streams_ended_total/disconnect"] == STATS["streams_ended_disconnect"]
    assert samples["kubebeast_env_interruptions_total"] == STATS["env_interruptions"]
    assert samples["kubebeast_streams"] == STATS["streams"]


def test_the_pool_has_every_number_it_is_asked_for() -> None:
    assert STATS.keys() - {"restarts"} <= make_pool().stats().keys()


def test_books_balance_in_what_is_told() -> None:
    parts = {"delivered": 70, "dropped_partial": 3, "dropped_stale": 20, "dropped_close": 2}
    stats = {f"steps_{name}": count for name, count in parts.items()} | {"steps_in_flight": 5, "steps_sampled": 100}
    samples = scrape(stats, None)
    told = sum(samples[f"kubebeast_steps_total/{name}"] for name in parts)
    assert samples["kubebeast_steps_total/sampled"] == told + samples["kubebeast_steps_in_flight"] == 100


def test_the_training_is_told_of_by_its_newest_snapshot() -> None:
    samples = scrape({}, replace(RUNNING, num_updates=312, checkpoint_age_s=7.5))
    assert samples["kubebeast_learner_step"] == 50_000
    assert samples["kubebeast_updates_total"] == 312
    assert samples["kubebeast_policy_lag_updates"] == 1.25
    assert samples["kubebeast_episode_return_mean"] == -12.345
    assert samples["kubebeast_checkpoint_age_seconds"] == 7.5


def test_what_is_not_known_is_left_out() -> None:
    samples = scrape({}, START)
    assert samples["kubebeast_learner_step"] == 0
    assert "kubebeast_policy_lag_updates" not in samples
    assert scrape({}, None) == {}


def test_names_and_help_follow_the_conventions() -> None:
    rows = [*ACTORS, *TRAINING]
    assert len({row.name for row in rows}) == len(rows)
    for row in rows:
        assert re.fullmatch(r"kubebeast_[a-z]+(_[a-z]+)*", row.name)
        assert row.help.endswith(".")
        assert not row.name.endswith("_total")  # the client's
        assert (row.label == "") == isinstance(row.source, str)


def test_every_row_of_the_training_is_a_value_of_a_snapshot() -> None:
    known = RUNNING.flat().keys()
    assert [row.source for row in TRAINING if row.source not in known] == []


@pytest.mark.parametrize("name", ["process_resident_memory_bytes", "process_open_fds"])
def test_the_process_is_told_of_too(name: str) -> None:
    assert f"\n{name} " in generate_latest(make_registry(dict, lambda: None)).decode()


def test_only_counters_are_called_total() -> None:
    text = generate_latest(make_registry(lambda: STATS, lambda: RUNNING)).decode()
    counters = {f"{row.name}_total" for row in (*ACTORS, *TRAINING) if row.family is COUNTER}
    assert set(re.findall(r"^# TYPE (kubebeast_\w+) counter$", text, flags=re.MULTILINE)) == counters
