"""Every setting has a rule for resumed runs, and the guide lists the same rules."""

from collections import Counter
from pathlib import Path

import pytest

from kubebeast_common.cli.settings import as_settings, setting_types
from kubebeast_learner.config import ConfigError, LearnerConfig, ModelConfig, MonoConfig, RunConfig, TrainConfig
from kubebeast_learner.config.resuming import changes, check_resume
from kubebeast_runs.resuming import FIXED, RESUMING

GUIDE = Path(__file__).resolve().parents[4] / "docs" / "runs.md"
ORIGIN = "checkpoint-7.pt"


def test_every_setting_of_every_training_is_in_the_table_once() -> None:
    settings = set().union(*(setting_types(command) for command in (TrainConfig, LearnerConfig, MonoConfig)))
    assert Counter(name for group in RESUMING for name in group.settings) == Counter(settings)


def test_the_guide_has_the_table() -> None:
    rows = []
    for group in RESUMING:
        names = ", ".join(f"`{name}`" for name in group.settings)
        rows.append(f"| {names} | {'yes' if group.may_change else 'no'} | {group.reason} |")
    assert "\n".join(rows) in GUIDE.read_text(encoding="utf-8")


def test_a_run_resumes_with_its_own_settings_under_every_command() -> None:
    for command in (TrainConfig, LearnerConfig, MonoConfig):
        for other in (TrainConfig, LearnerConfig, MonoConfig):
            check_resume(as_settings(command()), as_settings(other()), ORIGIN)


def test_every_fixed_setting_is_refused_with_both_values_and_what_to_do() -> None:
    saved = as_settings(TrainConfig())
    for name in FIXED:
        wanted = saved | {name: "another"}
        with pytest.raises(ConfigError) as error:
            check_resume(wanted, saved, ORIGIN)
        message = str(error.value)
        assert message.startswith(f"{name} = 'another': {ORIGIN} was trained with {name} = {saved[name]!r}")
        assert "config.yaml" in message and "another xpid" in message


def test_a_fixed_setting_that_is_left_open_is_not_refused() -> None:
    check_resume({"env": ""}, {"env": "CartPole-v1"}, ORIGIN)
    check_resume({"env": "CartPole-v1"}, {"env": ""}, ORIGIN)


def test_the_environment_may_be_written_in_another_way() -> None:
    for wanted in ("CartPole-v1", "gymnasium:CartPole-v1", "vector/CartPole-v1"):
        check_resume({"env": wanted}, {"env": "my.module:CartPole-v1"}, ORIGIN)
    for wanted in ("CartPole-v0", "other/CartPole-v1", "Pole-v1"):
        with pytest.raises(ConfigError, match="env = "):
            check_resume({"env": wanted}, {"env": "CartPole-v1"}, ORIGIN)


def test_arguments_of_an_environment_may_be_written_in_another_way() -> None:
    saved, wanted = {"env_kwargs": '{"size":5,"walls":true}'}, {"env_kwargs": '{"walls": true, "size": 5}'}
    check_resume(wanted, saved, "checkpoint.pt")
    with pytest.raises(ConfigError, match="env_kwargs = "):
        check_resume({"env_kwargs": '{"size": 6, "walls": true}'}, saved, "checkpoint.pt")


def test_shares_may_change_and_tasks_may_not() -> None:
    saved = {"task_shares": "Pong-v5=2,Qbert-v5=1"}
    check_resume({"task_shares": "Pong-v5=1, envpool/Qbert-v5=0.5"}, saved, ORIGIN)
    for wanted in ("Qbert-v5=1,Pong-v5=2", "Pong-v5=2,Qbert-v5=1,Tennis-v5=1", ""):
        with pytest.raises(ConfigError, match="task_shares = "):
            check_resume({"task_shares": wanted}, saved, ORIGIN)


def test_wrappers_may_be_written_in_another_way_and_are_not_left_open() -> None:
    saved = {"wrappers": '[{"a:B": {}}, "c:D"]', "time_limit": 100}
    check_resume({"wrappers": "a:B,c:D", "time_limit": 100}, saved, ORIGIN)
    for wrappers in ("[]", "c:D,a:B", '[{"a:B": {"x": 1}}, "c:D"]'):
        with pytest.raises(ConfigError, match=r"wrappers = .* was trained with wrappers = "):
            check_resume({"wrappers": wrappers}, saved, ORIGIN)
    with pytest.raises(ConfigError, match=f"time_limit = 0: {ORIGIN} was trained with time_limit = 100"):
        check_resume({"time_limit": 0}, saved, ORIGIN)


def test_all_that_is_refused_is_named_at_once() -> None:
    wanted = TrainConfig(run=RunConfig(seed=2), model=ModelConfig(use_lstm=True))
    with pytest.raises(ConfigError, match=r"seed = 2, use_lstm = True: .* seed = 1, use_lstm = False, which"):
        check_resume(as_settings(wanted), as_settings(TrainConfig()), ORIGIN)


def test_what_may_change_is_told_with_both_values() -> None:
    saved = as_settings(TrainConfig())
    wanted = saved | {"alpha": 0.5, "total_steps": 7}
    check_resume(wanted, saved, ORIGIN)
    assert changes(wanted, saved) == {"alpha": (0.99, 0.5), "total_steps": (100_000, 7)}
