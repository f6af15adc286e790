"""The learner of a run has the threads that its model is worth, and the schedules of the settings."""

from collections.abc import Iterator

import pytest
import torch

from kubebeast_learner.config import LossConfig, ModelConfig, OptimizerConfig, RunConfig, TrainingConfig
from kubebeast_learner.training.build import assemble_learner
from tests.unit.learner.algorithm.learning_data import random_rollout
from tests.unit.learner.training.scripted_actors import SPEC

SMALL, LARGE = (64, 64), (1024, 1024)


@pytest.fixture(autouse=True)
def three_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize(
    ("hidden_sizes", "learner_threads", "expected"), [(SMALL, 0, 1), (SMALL, 3, 3), (LARGE, 0, 3), (LARGE, 3, 3)]
)
def test_a_small_model_computes_in_one_thread(
    hidden_sizes: tuple[int, ...], learner_threads: int, expected: int
) -> None:
    run = RunConfig(device="cpu", compile="off", learner_threads=learner_threads)
    assemble_learner(TrainingConfig(run=run, model=ModelConfig(model="mlp", hidden_sizes=hidden_sizes)), SPEC, None)
    assert torch.get_num_threads() == expected


@pytest.mark.parametrize(("schedule_steps", "expected"), [(None, 0.5), (400, 0.75), (50, 0.0)])
def test_schedules_extend_over_the_run_or_over_the_steps_of_the_settings(
    schedule_steps: int | None, expected: float
) -> None:
    run = RunConfig(device="cpu", compile="off", total_steps=200, schedule_steps=schedule_steps)
    optimizer = OptimizerConfig(learning_rate=0.01, learning_rate_schedule="linear")
    loss = LossConfig(entropy_cost=0.02, entropy_schedule="linear")
    config = TrainingConfig(run=run, optimizer=optimizer, loss=loss, model=ModelConfig(model="mlp", hidden_sizes=(4,)))
    learner = assemble_learner(config, SPEC, None)

    stats = learner.update(random_rollout(), 100)

    assert (stats.learning_rate / 0.01, stats.entropy_cost / 0.02) == pytest.approx((expected, expected))
