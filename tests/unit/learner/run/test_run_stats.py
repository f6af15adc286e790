"""The statistics of a run follow from its events."""

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pytest

from kubebeast_learner.algorithm.learner import UpdateStats
from kubebeast_learner.run.new_episodes import MAX_LISTED
from kubebeast_learner.run.snapshot import COLUMNS, WINDOW_S, RankStats
from kubebeast_learner.run.stats import RunStats
from kubebeast_learner.run.task_returns import RECENT_EPISODES

NAN = float("nan")
UPDATE = UpdateStats(
    total_loss=3.0,
    parts={
        "pg_loss": 1.0,
        "baseline_loss": 2.5,
        "entropy_loss": -0.5,
        "entropy": 0.6,
        "mean_rho": 1.0,
        "clipped_rho": 0.0,
    },
    grad_norm=4.0,
    policy_lag=1.5,
    num_transitions=100,
    learning_rate=0.01,
    entropy_cost=0.01,
    version=1,
    skipped=False,
)


@dataclass
class Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@dataclass(frozen=True)
class Episode:
    episode_return: float
    length: int = 10
    env_id: str = "Pong"
    info: Sequence[float] = ()
    options: str = ""
    opponents: Sequence[int] = ()


def pool(**values: int) -> Mapping[str, int]:
    return {
        "inference_batches": 0,
        "inference_rows": 0,
        "rollouts_queued": 0,
        "rollout_queue_capacity": 16,
        "streams": 0,
        "envs": 0,
        "restarts": 0,
        **values,
    }


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def stats(clock: Clock) -> RunStats:
    return RunStats(total_steps=1000, clock=clock)


def test_nothing_is_claimed_before_anything_happened(stats: RunStats) -> None:
    flat = stats.snapshot(pool()).flat()
    unknown = {
        "sps",
        "eta_s",
        "mean_episode_return",
        "rows_per_inference",
        "checkpoint_age_s",
        "total_loss",
        "grad_norm",
    }
    assert {name for name in unknown if flat[name] is None} == unknown
    assert flat["step"] == flat["episodes"] == 0


def test_flat_has_the_same_names_before_and_after_the_first_update(stats: RunStats) -> None:
    before = list(stats.snapshot(pool()).flat())
    stats.add_update(UPDATE)
    assert list(stats.snapshot(pool()).flat()) == before


def test_every_column_of_the_log_is_a_value_of_a_snapshot(stats: RunStats) -> None:
    assert list(stats.snapshot(pool()).columns()) == [name for name in stats.snapshot(pool()).flat() if name in COLUMNS]
    assert set(COLUMNS) <= stats.snapshot(pool()).flat().keys()


def test_parts_of_a_loss_of_ones_own_have_columns_of_their_own(stats: RunStats) -> None:
    stats.add_update(replace(UPDATE, parts={**UPDATE.parts, "logit_penalty": 7.0}))
    snapshot = stats.snapshot(pool())
    assert snapshot.flat()["loss/logit_penalty"] == 7.0 and snapshot.flat()["pg_loss"] == 1.0
    assert snapshot.columns()["loss/logit_penalty"] == 7.0
    assert snapshot.own_loss_parts() == {("logit_penalty",): 7.0}


def test_speed_is_that_of_the_window_and_predicts_the_end(stats: RunStats, clock: Clock) -> None:
    stats.add_update(UPDATE)
    clock.now = 10.0
    first = stats.snapshot(pool())
    assert (first.sps, first.eta_s) == (10.0, 90.0)
    clock.now = 10.0 + WINDOW_S
    stats.add_update(replace(UPDATE, num_transitions=600))
    second = stats.snapshot(pool())
    assert second.sps == 600 / WINDOW_S
    assert second.eta_s == 300 / second.sps


def test_steps_of_skipped_updates_are_no_steps_of_the_run(clock: Clock) -> None:
    stats = RunStats(total_steps=1000, tasks=("Pong", "Breakout"), clock=clock)
    stats.add_update(UPDATE, (40, 60))
    stats.add_update(replace(UPDATE, skipped=True), (40, 60))
    snapshot = stats.snapshot(pool())
    assert (snapshot.step, snapshot.num_updates, snapshot.num_skipped_updates) == (100, 1, 1)
    assert [task.step for task in snapshot.tasks.values()] == [40, 60]


def test_the_policy_lag_is_that_of_all_batches_of_a_burst(stats: RunStats, clock: Clock) -> None:
    for lag in (0.0, 1.0, 2.0):
        stats.add_update(replace(UPDATE, policy_lag=lag))
    assert stats.snapshot(pool()).flat()["policy_lag"] == 1.0
    clock.now += WINDOW_S
    stats.snapshot(pool())
    stats.add_update(replace(UPDATE, policy_lag=5.0))
    clock.now += WINDOW_S
    assert stats.snapshot(pool()).flat()["policy_lag"] == 5.0
    assert stats.snapshot(pool()).flat()["policy_lag"] == 5.0


def test_a_learner_is_starved_while_it_waits(stats: RunStats, clock: Clock) -> None:
    assert stats.snapshot(pool()).starved_ratio is None
    with stats.waiting():
        clock.now = 3.0
    clock.now = 4.0
    assert stats.snapshot(pool()).starved_ratio == 0.75
    clock.now = 4.0 + WINDOW_S
    assert stats.snapshot(pool()).starved_ratio == 0.0
    assert stats.snapshot(pool()).waited_s == 3.0


def test_inference_is_busy_as_its_threads_are_on_average(stats: RunStats, clock: Clock) -> None:
    assert stats.snapshot(pool()).inference_busy_ratio is None
    clock.now = 4.0
    assert stats.snapshot(pool(inference_busy_us=6_000_000, inference_threads=2)).inference_busy_ratio == 0.75
    clock.now = 4.0 + WINDOW_S
    assert stats.snapshot(pool(inference_busy_us=6_000_000, inference_threads=2)).inference_busy_ratio == 0.0


def test_rows_per_inference_do_not_depend_on_how_often_one_looks(stats: RunStats) -> None:
    looks = [stats.snapshot(pool(inference_batches=10, inference_rows=80)).rows_per_inference for _ in range(3)]
    assert looks == [8.0, 8.0, 8.0]


def test_several_learners_tell_each_other_how_they_do(clock: Clock) -> None:
    of_ranks = [RunStats(total_steps=1000, clock=clock) for _ in range(2)]
    pools = [pool(streams=1, envs=8, rollouts_queued=3), pool(streams=2, envs=4)]
    clock.now += 2.0
    told = [
        stats.own_rank({**actors, "steps_delivered": 100 * (rank + 1)}, empty_shares=5 * rank)
        for rank, (stats, actors) in enumerate(zip(of_ranks, pools, strict=True))
    ]
    of_ranks[0].note_ranks(told)
    values = of_ranks[0].snapshot(pools[0]).flat()
    assert [values[f"{name}/rank0"] for name in RankStats._fields] == [1, 8, 50.0, 3, 0]
    assert [values[f"{name}/rank1"] for name in RankStats._fields] == [2, 4, 100.0, 0, 5]
    assert not any("/rank" in name for name in of_ranks[1].snapshot(pools[1]).flat())


def test_mean_return_is_over_the_newest_episodes(stats: RunStats) -> None:
    stats.add_episodes([Episode(0.0)] * 5 + [Episode(2.0)] * RECENT_EPISODES)
    stats.add_episodes([Episode(4.0, length=30)] * (RECENT_EPISODES // 2))
    snapshot = stats.snapshot(pool())
    assert snapshot.episodes == 5 + RECENT_EPISODES + RECENT_EPISODES // 2
    assert (snapshot.mean_episode_return, snapshot.mean_episode_step) == (3.0, 20.0)
    assert stats.mean_of_last(20) == {"Pong": 4.0}


def test_every_task_has_the_same_weight_in_the_mean_return(stats: RunStats) -> None:
    stats.add_episodes([Episode(1.0)] * 500 + [Episode(300.0, env_id="Breakout")])
    assert stats.snapshot(pool()).mean_episode_return == 150.5
    assert stats.mean_of_last(20) == {"Pong": 1.0, "Breakout": 300.0}


def test_the_score_of_a_training_is_the_mean_over_all_tasks_once_each_has_one(stats: RunStats) -> None:
    assert stats.training_score() is None
    stats.add_episodes([Episode(-math.inf), Episode(7.0)])
    assert stats.training_score() == -math.inf, "which is no score"
    several = RunStats(total_steps=1000, tasks=("Pong", "Qbert"))
    several.add_episodes([Episode(300.0, env_id="Qbert")] * 20)
    assert several.training_score() is None, "Pong would lower it later"
    several.add_episodes([Episode(-20.0)])
    assert several.training_score() == 140.0
    resumed = RunStats(total_steps=1000, tasks=("Pong", "Qbert"))
    resumed.load_state_dict(several.state_dict(), 10, "Pong")
    assert resumed.training_score() == 140.0


def test_new_episodes_are_taken_once_as_a_summary_and_a_bounded_list(stats: RunStats) -> None:
    stats.add_episodes([Episode(1.0)] * 10_000)
    stats.add_episodes([Episode(-2.0), Episode(21.0)])
    taken = stats.take_new_episodes()
    assert taken["episode_returns"] == (1.0,) * (MAX_LISTED - 2) + (-2.0, 21.0)
    assert taken["new_episodes"] == 10_002 and taken["new_mean_return"] == (10_000 - 2 + 21) / 10_002
    assert (taken["new_min_return"], taken["new_max_return"]) == (-2.0, 21.0)
    assert len(str(taken)) < 1000
    assert stats.take_new_episodes() == {
        **dict.fromkeys(("new_mean_return", "new_min_return", "new_max_return")),
        "new_episodes": 0,
        "episode_returns": (),
    }
    assert stats.snapshot(pool()).episodes == 10_002


def test_checkpoint_age_and_failures(stats: RunStats, clock: Clock) -> None:
    clock.now = 5.0
    stats.note_checkpoint(num_bytes=4096)
    clock.now = 8.0
    stats.note_failed_checkpoint()
    snapshot = stats.snapshot(pool())
    assert (snapshot.checkpoint_age_s, snapshot.checkpoint_failures) == (3.0, 1)
    assert snapshot.checkpoint_bytes == 4096
    assert snapshot.checkpoint_time_s == pytest.approx(time.time(), abs=60)


def test_books_of_the_pool_are_passed_on_and_unknown_without_one(stats: RunStats) -> None:
    snapshot = stats.snapshot(
        pool(env_interruptions=1, steps_in_flight=20, steps_dropped_partial=3, steps_dropped_stale=4)
    )
    assert (snapshot.env_failures, snapshot.steps_in_flight) == (1, 20)
    assert (snapshot.steps_dropped_partial, snapshot.steps_dropped_stale) == (3, 4)
    assert stats.snapshot(pool()).steps_in_flight is None


def test_a_resumed_run_counts_on_and_measures_speed_from_there(stats: RunStats) -> None:
    stats.add_update(UPDATE)
    stats.add_episodes([Episode(7.0)])
    clock = Clock()
    resumed = RunStats(total_steps=1000, clock=clock)
    resumed.load_state_dict(stats.state_dict(), step=100, env_id="Pong")
    resumed.add_update(UPDATE)
    clock.now = 10.0
    snapshot = resumed.snapshot(pool())
    assert (snapshot.step, snapshot.num_updates, snapshot.episodes, snapshot.sps) == (200, 2, 1, 10.0)
    assert (snapshot.process_updates, snapshot.process_skipped_updates, snapshot.process_episodes) == (1, 0, 0)
    assert snapshot.mean_episode_return == 7.0


def test_each_of_several_tasks_has_its_steps_and_its_return() -> None:
    stats = RunStats(total_steps=1000, tasks=("Pong", "Qbert"))
    stats.add_update(UPDATE, [70, 30])
    stats.add_update(UPDATE, [60, 40])
    stats.add_episodes([Episode(7.0), Episode(300.0, env_id="Qbert"), Episode(100.0, env_id="Qbert")])
    snapshot = stats.snapshot(pool())
    assert snapshot.tasks == {"Pong": (130, 130, 7.0), "Qbert": (70, 70, 200.0)}
    flat = snapshot.flat()
    assert (flat["step/Pong"], flat["step/Qbert"], flat["mean_episode_return/Qbert"]) == (130, 70, 200.0)
    assert flat["step"] == 200


def test_steps_of_tasks_count_on_after_a_resume() -> None:
    def run() -> RunStats:
        return RunStats(total_steps=1000, tasks=("Pong", "Qbert"))

    first, resumed = run(), run()
    first.add_update(UPDATE, [70, 30])
    resumed.load_state_dict(first.state_dict(), step=100, env_id="Pong")
    resumed.add_update(UPDATE, [1, 2])
    assert resumed.snapshot(pool()).tasks == {"Pong": (71, 1, None), "Qbert": (32, 2, None)}


def test_returns_that_were_saved_without_their_task_are_the_environments(stats: RunStats) -> None:
    stats.add_episodes([Episode(7.0)])
    state = stats.state_dict()
    state["returns"] = state.pop("task_returns")["Pong"]
    resumed = RunStats(total_steps=1000)
    resumed.load_state_dict(state, step=100, env_id="Pong")
    assert resumed.mean_of_last(20) == {"Pong": 7.0}


def test_numbers_of_infos_are_means_of_the_newest_episodes_that_have_them() -> None:
    stats = RunStats(total_steps=1000, log_info=["success", "time", "missing"])
    stats.add_episodes([Episode(1.0, info=[1.0, 2.5, NAN]), Episode(1.0, info=[0.0, NAN, NAN]), Episode(1.0)])
    snapshot = stats.snapshot(pool())

    assert snapshot.infos == {"success": 0.5, "time": 2.5, "missing": None}
    assert snapshot.columns()["info/success"] == 0.5
    assert snapshot.labelled_infos() == {("success",): 0.5, ("time",): 2.5}

    stats.add_episodes([Episode(1.0, info=[1.0, NAN, NAN])] * RECENT_EPISODES)
    assert stats.snapshot(pool()).infos == {"success": 1.0, "time": 2.5, "missing": None}


def test_numbers_of_infos_continue_in_a_resumed_run_whose_keys_may_differ() -> None:
    before = RunStats(total_steps=1000, log_info=["success", "time"])
    before.add_episodes([Episode(1.0, info=[1.0, 2.5])])
    resumed = RunStats(total_steps=1000, log_info=["score", "success"])

    resumed.load_state_dict(before.state_dict(), step=10, env_id="Pong")

    assert resumed.snapshot(pool()).infos == {"score": None, "success": 1.0}
