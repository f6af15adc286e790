"""A follower plays every new checkpoint of a run, skips those it is too late for, and ends with the run."""

import json
import logging
from dataclasses import replace
from typing import Any

import pytest
from gymnasium.envs.classic_control.cartpole import CartPoleEnv
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from kubebeast_learner.config import ConfigError
from kubebeast_learner.play.follow.follower import Follower
from kubebeast_learner.run.checkpoint_file import load
from kubebeast_runs.score_log import ScoreLog
from kubebeast_runs.scores import evaluators_in, read_scores
from kubebeast_runs.storage.local import LocalStorage
from kubebeast_runs.storage.storage import Storage
from tests.unit.learner.play.follow.followed_run import CONFIG, TOTAL, FollowedRun, Script


def test_every_checkpoint_is_scored_until_the_run_is_over(run: FollowedRun) -> None:
    assert run.follow(lambda: run.save(10), lambda: None, lambda: run.save(TOTAL + 3))
    assert run.played == [10, TOTAL + 3]
    columns = run.scores.columns
    assert columns["episodes"].tolist() == [2, 2]
    returns = zip(columns["min_return"], columns["mean_return"], columns["max_return"], strict=True)
    assert all(low <= mean <= high for low, mean, high in returns)
    assert columns["mean_length"] == columns["mean_return"], "CartPole gives 1 a step"
    assert run.outcomes() == {"played": 2, "skipped": 0, "failed": 0}
    assert "CartPole-v1,none,{},[],0,greedy,1" in (run.folder / "eval.csv").read_text()


def test_tensorboard_has_the_scores(run: FollowedRun) -> None:
    run.follow(lambda: run.save(10))
    events = EventAccumulator(str(run.folder / "tensorboard" / "eval")).Reload()
    (event,) = events.Scalars("eval/mean_return")
    assert event.step == 10
    assert event.value == pytest.approx(run.scores.columns["mean_return"][0])


def test_a_follower_that_is_late_plays_the_newest_and_says_what_it_skipped(
    run: FollowedRun, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    run.save(10, 20, 30)
    run.follow()
    assert run.played == [30]
    assert run.scores.columns["checkpoints_skipped"].tolist() == [2]
    assert "step 30: mean return" in caplog.text and "2 older checkpoints skipped" in caplog.text
    assert run.outcomes() == {"played": 1, "skipped": 2, "failed": 0}


def test_a_resumed_follower_plays_none_twice(run: FollowedRun) -> None:
    run.save(10, 20)
    run.follow()
    run.follow(lambda: run.save(30))
    assert run.played == [20, 30]
    run.save(TOTAL)
    assert run.follow()
    assert run.follow(), "there is nothing left to play"
    assert run.played == [20, 30, TOTAL]
    assert (run.folder / "eval.csv").read_text().count("#") == 1, "it goes on in the same table"


def test_a_damaged_checkpoint_is_reported_and_the_one_before_is_played(
    run: FollowedRun, caplog: pytest.LogCaptureFixture
) -> None:
    run.save(10, 20)
    run.damage(20)
    run.follow(lambda: None, lambda: run.save(30))
    assert run.played == [10, 30]
    assert caplog.text.count("the checkpoint at step 20 is not played: ") == 1
    assert run.outcomes() == {"played": 2, "skipped": 0, "failed": 1}


def test_a_run_whose_last_checkpoint_is_damaged_is_not_followed_to_its_end(run: FollowedRun) -> None:
    run.save(10, TOTAL)
    run.damage(TOTAL)
    assert not run.follow()
    assert run.played == [10]


def test_a_checkpoint_that_is_deleted_while_it_is_read_is_no_failure(
    run: FollowedRun, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def load_late(storage: Storage, name: str) -> Any:
        if name == run.path(10).name:
            run.path(10).unlink()
            run.save(20)
        return load(storage, name)

    monkeypatch.setattr("kubebeast_learner.play.follow.follower.load", load_late)
    run.save(10)
    run.follow()
    assert run.played == [20]
    assert run.outcomes() == {"played": 1, "skipped": 1, "failed": 0}
    assert run.scores.columns["checkpoints_skipped"].tolist() == [1]
    assert "not played" not in caplog.text


def test_an_environment_that_fails_costs_one_checkpoint(run: FollowedRun, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: CartPoleEnv, action: Any) -> Any:
        monkeypatch.undo()
        raise ValueError("broken")

    monkeypatch.setattr(CartPoleEnv, "step", fail)
    run.save(10)
    run.follow(lambda: run.save(20))
    assert run.played == [20]
    assert run.outcomes() == {"played": 1, "skipped": 0, "failed": 1}


def test_a_learner_that_was_stopped_is_waited_for(run: FollowedRun, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    run.save(10)
    run.follow(lambda: None, lambda: None, run.begin, lambda: run.save(TOTAL))
    assert run.played == [10, TOTAL]
    assert caplog.text.count("the training has stopped at step 10 of 100; waiting for it to go on") == 1


def test_a_run_that_was_made_longer_is_not_over(run: FollowedRun) -> None:
    run.begin(total_steps=2 * TOTAL)
    run.save(TOTAL)
    run.follow(lambda: None, lambda: run.save(2 * TOTAL))
    assert run.played == [TOTAL, 2 * TOTAL]


def test_one_that_lingers_outlives_the_run(run: FollowedRun) -> None:
    run.save(TOTAL)
    run.follow(lambda: run.save(TOTAL + 1), config=replace(CONFIG, linger=True))
    assert run.played == [TOTAL, TOTAL + 1]


def test_a_stop_ends_it_in_the_middle_of_an_episode(run: FollowedRun, monkeypatch: pytest.MonkeyPatch) -> None:
    run.save(10)
    script = Script()
    with ScoreLog(run.folder) as scores:
        one = Follower(CONFIG, run.folder.name, LocalStorage(run.folder), scores, script, run.metrics)
        monkeypatch.setattr(run.metrics, "note_turn", script.set)
        assert one.run()
    assert run.played == []


def test_a_run_without_checkpoints_is_refused(run: FollowedRun) -> None:
    run.begin(disable_checkpoint=True)
    with pytest.raises(ConfigError, match="xpid = 'run': the run writes no checkpoints, disable_checkpoint is set"):
        run.follow()


def test_an_environment_of_other_shapes_is_refused(run: FollowedRun) -> None:
    run.save(10)
    with pytest.raises(ConfigError, match=r"env = 'Acrobot-v1'.*another environment"):
        run.follow(config=replace(CONFIG, env="Acrobot-v1"))


def test_what_differs_from_the_training_is_said_once(run: FollowedRun, caplog: pytest.LogCaptureFixture) -> None:
    config = replace(CONFIG, env_kwargs='{"max_episode_steps": 5}')
    run.follow(lambda: run.save(10), lambda: run.save(20), config=config)
    assert run.scores.columns["max_return"].tolist() == [5, 5]
    assert caplog.text.count("trained on CartPole-v1 with preset none") == 1


def test_json_is_a_line_a_checkpoint(run: FollowedRun, capfd: pytest.CaptureFixture[str]) -> None:
    run.follow(lambda: run.save(10), lambda: run.save(20), config=replace(CONFIG, json=True))
    results = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    assert [result["step"] for result in results] == [10, 20]
    assert [result["mean_return"] for result in results] == run.scores.columns["mean_return"].tolist()


def test_evaluators_with_names_have_scores_of_their_own(run: FollowedRun, capfd: pytest.CaptureFixture[str]) -> None:
    run.save(10)
    run.follow()
    files, sampling = LocalStorage(run.folder), replace(CONFIG, name="sampling", mode="sample", seed=3, json=True)
    run.follow(lambda: run.save(20), config=sampling)
    run.follow(config=sampling)
    assert run.played == [10] and list(read_scores(files, "sampling").steps) == [10, 20]
    assert evaluators_in(files) == ["", "sampling"]
    header, *rows = (run.folder / "eval-sampling.csv").read_text().splitlines()
    assert header.endswith(",evaluator") and all(row.endswith(",sample,3,sampling") for row in rows)
    assert "evaluator" not in (run.folder / "eval.csv").read_text(), "the file of the one without a name is as before"
    assert [json.loads(line)["evaluator"] for line in capfd.readouterr().out.splitlines()] == ["sampling"] * 2
