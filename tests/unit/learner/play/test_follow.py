"""A follower plays every new checkpoint of a run, skips what it is too late for, and ends with the run."""

import json
import logging
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from gymnasium.envs.classic_control.cartpole import CartPoleEnv
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from kubebeast_common.atomic_file import SUFFIX
from kubebeast_common.metrics import sample_names
from kubebeast_learner.config import ConfigError, EvalConfig, ModelConfig
from kubebeast_learner.play.follow.checkpoints import CheckpointFeed
from kubebeast_learner.play.follow.follower import Follower
from kubebeast_learner.play.follow.metrics import EVALUATION, LONGEST_TURN_S, FollowMetrics
from kubebeast_learner.play.trained_model import load_trained
from kubebeast_learner.run.log import RunLog
from kubebeast_learner.run.log_table import LogTable
from kubebeast_learner.run.scores import NAME, ScoreLog, read_scores
from tests.unit.learner.play.playing import write_run

TOTAL = 100
CONFIG = EvalConfig(follow=True, episodes=2, max_episode_steps=20)


class Script(threading.Event):
    """Instead of waiting for the next look, the learner does the next thing of a script; it ends with a stop."""

    def __init__(self, *deeds: Callable[[], object]) -> None:
        super().__init__()
        self._deeds = list(deeds)

    def wait(self, timeout: float | None = None) -> bool:
        if self._deeds:
            self._deeds.pop(0)()
        else:
            self.set()
        return self.is_set()


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Of a checkpoint of an untrained model for CartPole."""
    folder = write_run(tmp_path_factory.mktemp("runs") / "cartpole", "CartPole-v1", ModelConfig(model="mlp"))
    loaded: dict[str, Any] = torch.load(next(folder.glob("*.pt")), weights_only=True)
    return loaded


class Run:
    """A run whose learner does what a test says."""

    def __init__(self, folder: Path, state: dict[str, Any]) -> None:
        self.folder = folder
        self.metrics = FollowMetrics()
        self._state = state
        self.begin()

    def begin(self, **settings: Any) -> None:
        """A learner starts, again or for the first time."""
        with RunLog(self.folder.parent, self.folder.name) as log:
            log.record({"total_steps": TOTAL, **settings})

    def path(self, step: int) -> Path:
        return self.folder / f"checkpoint-{step:012d}.pt"

    def save(self, *steps: int) -> None:
        for step in steps:
            unfinished = self.path(step).with_suffix(".pt" + SUFFIX)
            torch.save({**self._state, "step": step}, unfinished)
            unfinished.replace(self.path(step))

    def damage(self, step: int) -> None:
        self.path(step).write_bytes(b"damaged")

    def follow(self, *deeds: Callable[[], object], config: EvalConfig = CONFIG) -> bool:
        """A follower's life, through all deeds or to the end of the run."""
        with ScoreLog(self.folder) as scores:
            return Follower(config, self.folder, scores, Script(*deeds), self.metrics).run()

    @property
    def scores(self) -> LogTable:
        return read_scores(self.folder)

    @property
    def played(self) -> list[int]:
        return [int(step) for step in self.scores.steps]

    def outcomes(self) -> dict[str, Any]:
        return {name: self.metrics.values()[name] for name in ("played", "skipped", "failed")}


@pytest.fixture
def run(tmp_path: Path, state: dict[str, Any]) -> Run:
    return Run(tmp_path / "run", state)


def steps_of(waiting: Iterable[Any]) -> list[int]:
    return [saved.step for saved in waiting]


def taken(feed: CheckpointFeed) -> Iterator[Any]:
    return iter(feed.take, None)


def test_the_newest_is_taken_and_those_before_it_stand_by(run: Run) -> None:
    feed = CheckpointFeed(run.folder, None)
    run.save(10, 20, 30)
    assert steps_of(taken(feed)) == [30, 20, 10]
    run.save(40)
    assert (steps_of(taken(feed)), feed.newest_step) == ([40], 40)


def test_those_that_appear_while_one_is_played_are_not_skipped(run: Run) -> None:
    feed = CheckpointFeed(run.folder, None)
    run.save(10, 20, 30)
    assert steps_of([feed.take()]) == [30]
    run.save(40)
    feed.look()
    assert feed.skip_older() == 2
    assert steps_of(taken(feed)) == [40]


def test_those_that_were_deleted_before_their_turn_count_as_skipped(run: Run) -> None:
    feed = CheckpointFeed(run.folder, None)
    run.save(10)
    feed.look()
    run.path(10).unlink()
    run.save(20)
    assert steps_of([feed.take()]) == [20]
    assert feed.skip_older() == 1


def test_a_file_that_is_still_being_written_is_none(run: Run) -> None:
    run.path(10).with_suffix(".pt" + SUFFIX).write_bytes(b"half of it")
    assert CheckpointFeed(run.folder, None).take() is None


def test_a_learner_that_went_back_behind_a_damaged_checkpoint_is_followed(run: Run) -> None:
    run.save(10, 30)
    feed = CheckpointFeed(run.folder, 30)
    assert feed.take() is None
    run.path(30).unlink()
    run.save(20)
    assert steps_of(taken(feed)) == [20]
    run.save(30)
    assert steps_of(taken(feed)) == [30]


def test_every_checkpoint_is_scored_until_the_run_is_over(run: Run) -> None:
    assert run.follow(lambda: run.save(10), lambda: None, lambda: run.save(TOTAL + 3))
    assert run.played == [10, TOTAL + 3]
    columns = run.scores.columns
    assert columns["episodes"].tolist() == [2, 2]
    assert (columns["min_return"] <= columns["mean_return"]).all()
    assert (columns["mean_return"] <= columns["max_return"]).all()
    assert (columns["mean_length"] == columns["mean_return"]).all(), "CartPole gives 1 a step"
    assert run.outcomes() == {"played": 2, "skipped": 0, "failed": 0}
    assert "CartPole-v1,none,{},greedy,1" in (run.folder / NAME).read_text()


def test_tensorboard_has_the_scores(run: Run) -> None:
    run.follow(lambda: run.save(10))
    events = EventAccumulator(str(run.folder / "tensorboard" / "eval")).Reload()
    (event,) = events.Scalars("eval/mean_return")
    assert event.step == 10
    assert event.value == pytest.approx(run.scores.columns["mean_return"][0])


def test_a_follower_that_is_late_plays_the_newest_and_says_what_it_skipped(
    run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    run.save(10, 20, 30)
    run.follow()
    assert run.played == [30]
    assert run.scores.columns["checkpoints_skipped"].tolist() == [2]
    assert "step 30: mean return" in caplog.text and "2 older checkpoints skipped" in caplog.text
    assert run.outcomes() == {"played": 1, "skipped": 2, "failed": 0}


def test_a_resumed_follower_plays_none_twice(run: Run) -> None:
    run.save(10, 20)
    run.follow()
    run.follow(lambda: run.save(30))
    assert run.played == [20, 30]
    run.save(TOTAL)
    assert run.follow()
    assert run.follow(), "there is nothing left to play"
    assert run.played == [20, 30, TOTAL]
    assert (run.folder / NAME).read_text().count("#") == 1, "it goes on in the same table"


def test_a_damaged_checkpoint_is_reported_and_the_one_before_is_played(
    run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    run.save(10, 20)
    run.damage(20)
    run.follow(lambda: None, lambda: run.save(30))
    assert run.played == [10, 30]
    assert caplog.text.count("the checkpoint at step 20 is not played: ") == 1
    assert run.outcomes() == {"played": 2, "skipped": 0, "failed": 1}


def test_a_run_whose_last_checkpoint_is_damaged_is_not_followed_to_its_end(run: Run) -> None:
    run.save(10, TOTAL)
    run.damage(TOTAL)
    assert not run.follow()
    assert run.played == [10]


def test_a_checkpoint_that_is_deleted_while_it_is_read_is_no_failure(
    run: Run, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def load_late(config: Any) -> Any:
        if config.checkpoint == run.path(10):
            run.path(10).unlink()
            run.save(20)
        return load_trained(config)

    monkeypatch.setattr("kubebeast_learner.play.follow.follower.load_trained", load_late)
    run.save(10)
    run.follow()
    assert run.played == [20]
    assert run.outcomes() == {"played": 1, "skipped": 1, "failed": 0}
    assert run.scores.columns["checkpoints_skipped"].tolist() == [1]
    assert "not played" not in caplog.text


def test_an_environment_that_fails_costs_one_checkpoint(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: CartPoleEnv, action: Any) -> Any:
        monkeypatch.undo()
        raise ValueError("broken")

    monkeypatch.setattr(CartPoleEnv, "step", fail)
    run.save(10)
    run.follow(lambda: run.save(20))
    assert run.played == [20]
    assert run.outcomes() == {"played": 1, "skipped": 0, "failed": 1}


def test_a_learner_that_was_stopped_is_waited_for(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    run.save(10)
    run.follow(lambda: None, lambda: None, run.begin, lambda: run.save(TOTAL))
    assert run.played == [10, TOTAL]
    assert caplog.text.count("the training has stopped at step 10 of 100; waiting for it to go on") == 1


def test_a_run_that_was_made_longer_is_not_over(run: Run) -> None:
    run.begin(total_steps=2 * TOTAL)
    run.save(TOTAL)
    run.follow(lambda: None, lambda: run.save(2 * TOTAL))
    assert run.played == [TOTAL, 2 * TOTAL]


def test_one_that_lingers_outlives_the_run(run: Run) -> None:
    run.save(TOTAL)
    run.follow(lambda: run.save(TOTAL + 1), config=replace(CONFIG, linger=True))
    assert run.played == [TOTAL, TOTAL + 1]


def test_a_stop_ends_it_in_the_middle_of_an_episode(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    run.save(10)
    script = Script()
    with ScoreLog(run.folder) as scores:
        one = Follower(CONFIG, run.folder, scores, script, run.metrics)
        monkeypatch.setattr(run.metrics, "note_turn", script.set)
        assert one.run()
    assert run.played == []


def test_a_run_without_checkpoints_is_refused(run: Run) -> None:
    run.begin(disable_checkpoint=True)
    with pytest.raises(ConfigError, match="xpid = 'run': the run writes no checkpoints, disable_checkpoint is set"):
        run.follow()


def test_an_environment_of_other_shapes_is_refused(run: Run) -> None:
    run.save(10)
    with pytest.raises(ConfigError, match=r"env = 'Acrobot-v1'.*another environment"):
        run.follow(config=replace(CONFIG, env="Acrobot-v1"))


def test_what_differs_from_the_training_is_said_once(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    config = replace(CONFIG, env_kwargs='{"max_episode_steps": 5}')
    run.follow(lambda: run.save(10), lambda: run.save(20), config=config)
    assert run.scores.columns["max_return"].tolist() == [5, 5]
    assert caplog.text.count("trained on CartPole-v1 with preset none") == 1


def test_json_is_a_line_a_checkpoint(run: Run, capfd: pytest.CaptureFixture[str]) -> None:
    run.follow(lambda: run.save(10), lambda: run.save(20), config=replace(CONFIG, json=True))
    results = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    assert [result["step"] for result in results] == [10, 20]
    assert [result["mean_return"] for result in results] == run.scores.columns["mean_return"].tolist()


def test_metrics_tell_the_newest_score_and_how_far_behind_it_is(run: Run) -> None:
    assert run.metrics.values()["step"] is None
    run.save(10)
    run.follow()
    run.metrics.newest_step = 30
    values = run.metrics.values()
    assert (values["step"], values["lag_steps"]) == (10, 20)
    assert values["mean_return"] == run.scores.columns["mean_return"][0]
    exported = {sample.name for family in run.metrics.registry().collect() for sample in family.samples}
    assert {name for row in EVALUATION for name in sample_names(row)} <= exported


def test_an_environment_that_hangs_is_a_problem() -> None:
    now = 0.0
    metrics = FollowMetrics(clock=lambda: now)
    assert metrics.problem() == ""
    now = LONGEST_TURN_S + 1
    assert metrics.problem() == "no step of the environments for 601 s"
    metrics.note_turn()
    assert metrics.problem() == ""


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"follow": True, "checkpoint": Path("a.pt")}, "checkpoint = 'a.pt': is one file, follow plays all of the run"),
        ({"follow": True, "xpid": "../run"}, "xpid = '../run': must be a plain name"),
        ({"follow": True, "xpid": ""}, "xpid = '': must be a plain name"),
        ({"follow": True, "http_address": "9090"}, 'http_address = .9090.: must be "host:port"'),
    ],
)
def test_settings_that_do_not_go_together_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        EvalConfig(**settings)


def test_variables_that_are_meant_for_a_learner_are_no_mistake() -> None:
    assert not EvalConfig(linger=True, http_address=":9090").follow
