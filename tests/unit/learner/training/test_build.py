"""The learner of a run computes with as many threads as its model is worth."""

from collections.abc import Iterator

import pytest
import torch

from kubebeast_learner.config import ModelConfig, RunConfig, TrainingConfig
from kubebeast_learner.training.build import assemble_learner
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
