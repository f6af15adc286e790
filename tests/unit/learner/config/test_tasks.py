"""The shares of tasks determine the environments of a training."""

import pytest

from kubebeast_learner.config import (
    ConfigError,
    LearnerConfig,
    LocalFleetConfig,
    MonoConfig,
    RemoteFleetConfig,
    TasksConfig,
    TrainConfig,
)
from kubebeast_learner.config.sources import layer_flags

TWO = TasksConfig(task_shares="module:Maze-v0=2, ALE/Pong-v5=0.5")


def test_tasks_keep_their_order_and_weights() -> None:
    assert dict(TWO.weights) == {"module:Maze-v0": 2.0, "ALE/Pong-v5": 0.5}
    assert TWO.tasks == ("module:Maze-v0", "ALE/Pong-v5")
    assert TWO.num_tasks == 2


def test_without_shares_there_is_one_task_without_a_name() -> None:
    assert TasksConfig().tasks == ()
    assert TasksConfig().num_tasks == 1


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("Pong-v5=1", "must name two tasks at least"),
        ("Pong-v5=1,Qbert-v5", "'Qbert-v5' must be ENV=WEIGHT"),
        ("Pong-v5=1,Qbert-v5=much", "'Qbert-v5=much' must be ENV=WEIGHT"),
        ("Pong-v5=1,=2", "'=2' must be ENV=WEIGHT"),
        ("Pong-v5=1,Pong-v5=2", "Pong-v5 is there twice"),
        ("Pong-v5=1,Qbert-v5=0", "the weight of Qbert-v5 must be positive"),
        ("Pong-v5=1,Qbert-v5=-1", "must be ENV=WEIGHT"),
        ("Pong-v5=1,Qbert-v5=inf", "must be ENV=WEIGHT"),
    ],
)
def test_bad_shares_are_named(text: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=f"task_shares = .*{reason}"):
        TasksConfig(task_shares=text)


def test_the_environment_is_one_of_the_tasks() -> None:
    for env in ("ALE/Pong-v5", "ale_py:ALE/Pong-v5", "Maze-v0"):
        LearnerConfig(tasks=TWO, fleet=RemoteFleetConfig(env=env))
    reason = r"env = .*is none of the tasks in task_shares: module:Maze-v0, ALE/Pong-v5"
    with pytest.raises(ConfigError, match=reason):
        LearnerConfig(tasks=TWO, fleet=RemoteFleetConfig(env="Else-v0"))
    with pytest.raises(ConfigError, match=reason):
        TrainConfig(tasks=TWO)


def test_every_task_needs_an_env_server_of_ones_own_machine() -> None:
    fleet = LocalFleetConfig(env="ALE/Pong-v5", num_servers=1)
    with pytest.raises(ConfigError, match="num_servers = 1: must be at least 2, one for each task"):
        TrainConfig(tasks=TWO, fleet=fleet)


def test_mono_says_which_command_plays_several_tasks() -> None:
    with pytest.raises(ConfigError, match=r"task_shares = .*kubebeast train"):
        MonoConfig(tasks=TWO)


def test_the_first_task_is_the_environment_where_none_is_named() -> None:
    layered = layer_flags(TrainConfig, ["--task-shares=Pong-v4=2,Else-v0=1"], {})
    assert "--env=Pong-v4" in layered.flags
    assert any(note.startswith("recipe atari:") for note in layered.notes)
    by_variable = layer_flags(TrainConfig, [], {"KUBEBEAST_TASK_SHARES": "Else-v0=1,Pong-v4=2"})
    assert "--env=Else-v0" in by_variable.flags and not any(note.startswith("recipe") for note in by_variable.notes)


def test_a_named_environment_stays() -> None:
    flags = layer_flags(TrainConfig, ["--task-shares=CartPole-v1=2,Else-v0=1", "--env=Else-v0"], {}).flags
    assert "--env=CartPole-v1" not in flags
