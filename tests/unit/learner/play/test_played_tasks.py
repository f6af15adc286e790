"""A model of several tasks plays the requested one, with its settings from the training."""

from pathlib import Path

import pytest
import torch

from kubebeast_common.spec.env_config import EnvConfig
from kubebeast_common.spec.leaves import Leaf
from kubebeast_learner.config import CheckpointConfig, ConfigError, LearnerConfig, ModelConfig, PlayConfig, TasksConfig
from kubebeast_learner.play.export import Actor, Format, check, example_inputs, load, write
from kubebeast_learner.play.playing import choose_env
from kubebeast_learner.play.trained_model import TrainedModel, load_trained
from tests.unit.learner.play.playing import write_checkpoint
from tests.unit.learner.play.test_export import FORMATS

OBSERVATION, ACTION = [Leaf("", "float32", (4,))], [Leaf("", "int64", (), num_categories=2)]
LIMITED = EnvConfig(preset="none", time_limit=20)
MODEL = ModelConfig(hidden_sizes=(8,), normalise_values=True, task_input=True)


@pytest.fixture
def trained(tmp_path: Path) -> TrainedModel:
    shares = TasksConfig(task_shares="CartPole-v0=1,CartPole-v1=2")
    write_checkpoint(
        tmp_path / "run",
        "CartPole-v0",
        OBSERVATION,
        ACTION,
        MODEL,
        env_config=EnvConfig(preset="none"),
        settings=LearnerConfig(tasks=shares),
        task_configs={"CartPole-v0": EnvConfig(preset="none"), "CartPole-v1": LIMITED},
    )
    return load_trained(CheckpointConfig(savedir=str(tmp_path), xpid="run"))


def test_the_task_that_the_run_began_with_is_played_where_none_is_named(trained: TrainedModel) -> None:
    assert trained.playing("") is trained
    assert (trained.env_id, trained.task, trained.model.num_tasks) == ("CartPole-v0", 0, 2)


def test_another_task_is_played_as_it_was_made_in_training(trained: TrainedModel) -> None:
    other = trained.playing("gymnasium:CartPole-v1")
    assert (other.env_id, other.task) == ("CartPole-v1", 1)
    played = choose_env(PlayConfig(env="CartPole-v1"), other)
    assert (played.env_id, played.config, played.notes) == ("CartPole-v1", LIMITED, [])


def test_an_environment_that_is_no_task_is_refused(trained: TrainedModel) -> None:
    with pytest.raises(ConfigError, match=r"env = 'Acrobot-v1': .* was trained on the tasks CartPole-v0, CartPole-v1"):
        trained.playing("Acrobot-v1")


@pytest.mark.parametrize("format", FORMATS)
def test_an_export_plays_one_task(trained: TrainedModel, tmp_path: Path, format: Format) -> None:
    assert trained.model.popart is not None
    torch.nn.init.normal_(trained.model.popart.weight)
    values = []
    for env_id in ("CartPole-v0", "CartPole-v1"):
        chosen = trained.playing(env_id)
        actor = Actor(chosen.model, 1, chosen.task)
        inputs = example_inputs(actor, chosen.env_spec)
        write(actor, inputs, tmp_path / "model.pt2", format)
        check(actor, chosen.env_spec, load(tmp_path / "model.pt2", format))
        values.append(actor(*inputs)[1])
    assert not torch.equal(*values)
