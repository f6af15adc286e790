"""A follower serves metrics and probes, and checks its settings."""

from pathlib import Path
from typing import Any

import pytest

from kubebeast_common.metrics import sample_names
from kubebeast_learner.config import ConfigError, EvalConfig
from kubebeast_learner.play.follow.metrics import EVALUATION, LONGEST_TURN_S, FollowMetrics
from tests.unit.learner.play.follow.followed_run import FollowedRun


def test_metrics_tell_the_newest_score_and_how_far_behind_it_is(run: FollowedRun) -> None:
    assert run.metrics.values()["step"] is None
    run.save(10)
    run.follow()
    run.metrics.newest_step = 30
    values = run.metrics.values()
    assert (values["step"], values["lag_steps"]) == (10, 20)
    assert values["mean_return"] == run.scores.columns["mean_return"][0]
    exported = {sample.name for family in run.metrics.registry().collect() for sample in family.samples}
    assert {name for row in EVALUATION for name in sample_names(row)} <= exported


def test_metrics_of_an_evaluator_with_a_name_carry_it() -> None:
    def labels(evaluator: str) -> set[str | None]:
        families = FollowMetrics(evaluator).registry().collect()
        samples = [sample for family in families for sample in family.samples if "_eval_" in sample.name]
        return {sample.labels.get("evaluator") for sample in samples}

    assert labels("greedy") == {"greedy"}
    assert labels("") == {None}


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
        ({"follow": True, "name": "a.b"}, "name = 'a.b': must have 1 to 63 letters, digits, - and _"),
        ({"name": "a"}, "name = 'a': names an evaluator, which needs follow"),
        ({"follow": True, "best": True}, "best = True: is one checkpoint, follow plays all of the run xpid"),
        ({"best": True, "checkpoint": Path("a.pt")}, "best = True: checkpoint names a file already"),
        ({"follow": True, "http_address": "9090"}, 'http_address = .9090.: must be "host:port"'),
    ],
)
def test_settings_that_do_not_go_together_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        EvalConfig(**settings)


def test_variables_that_are_meant_for_a_learner_are_no_mistake() -> None:
    assert not EvalConfig(linger=True, http_address=":9090").follow
