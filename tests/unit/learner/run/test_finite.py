"""Only a learner's finite state becomes a checkpoint."""

from typing import Any

import pytest
import torch

from kubebeast_learner.algorithm import Learner
from kubebeast_learner.config import LossConfig, ModelConfig, OptimizerConfig
from kubebeast_learner.models import make_model
from kubebeast_learner.models.finite import not_finite_in
from tests.unit.learner.algorithm.learning_data import VECTOR, discrete, random_rollout


def trained(model: str = "mlp", **settings: Any) -> Learner:
    torch.manual_seed(0)
    made = make_model([VECTOR], [discrete(3)], ModelConfig(model=model, hidden_sizes=(8,), **settings))
    learner = Learner(made, OptimizerConfig(optimizer="adam"), LossConfig(), schedule_steps=1000)
    learner.update(random_rollout(), 0)
    return learner


@pytest.mark.parametrize("value", [torch.nan, torch.inf, -torch.inf])
def test_every_tensor_of_model_and_optimizer_counts(value: float) -> None:
    learner = trained(normalise_observations=True, normalise_values=True)
    assert not_finite_in(learner.state_dict()) == ""
    model, optimizer = learner.state_dict()["model"], learner.state_dict()["optimizer"]["state"]
    tensors = {f"learner.model.{name}": tensor for name, tensor in model.items()}
    tensors |= {f"learner.optimizer.state.{i}.{name}": x for i, state in optimizer.items() for name, x in state.items()}
    assert {"learner.model.normaliser.leaves.0.mean", "learner.model.baseline.variance"} <= tensors.keys()
    for name, tensor in tensors.items():
        first = tensor.flatten()[0].clone()
        tensor.flatten()[0] = value
        assert not_finite_in(learner.state_dict()) == f"{name} holds {value}"
        tensor.flatten()[0] = first
    assert not_finite_in(learner.state_dict()) == ""


def test_masks_that_a_model_was_made_with_are_no_fault() -> None:
    learner = trained("tests.unit.learner.models.user_models:Causal")
    state = {"learner": learner.state_dict()}
    assert not_finite_in(state["learner"]) == ""
    del state["learner"]["made_not_finite"]  # as older versions save it
    assert not_finite_in(state["learner"]) == ""
    state["learner"]["model"]["net.mask"][0, 0] = torch.nan
    assert not_finite_in(state["learner"]) == "learner.model.net.mask holds nan"
