"""Models for several tasks apply the task of each row."""

import pytest
import torch

from kubebeast_learner.config import ModelConfig
from kubebeast_learner.models import Model, ModelInputs, ModelSpecError, make_model
from tests.unit.learner.algorithm.learning_data import VECTOR, discrete, random_rollout

TASK = torch.tensor([[0, 1, 1, 0]])
OTHER_TASK = torch.tensor([[0, 0, 1, 1]])
CHANGED = (TASK != OTHER_TASK).squeeze(0)


def make(*, num_tasks: int = 2, **settings: bool | str) -> Model:
    torch.manual_seed(0)
    return make_model([VECTOR], [discrete(3)], ModelConfig(hidden_sizes=(8,), **settings), num_tasks)  # type: ignore[arg-type]


def inputs_of(task: torch.Tensor | None) -> ModelInputs:
    return random_rollout(task=task).model_inputs


def outputs(model: Model, task: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    output, _ = model(inputs_of(task), ())
    return output.policy_logits, output.baseline


def changed_columns(before: torch.Tensor, after: torch.Tensor) -> list[bool]:
    """Returns [B]: True if any value of the column differs."""
    difference = (before != after).transpose(0, 1).flatten(1)
    return difference.any(dim=1).tolist()


def test_rows_of_an_unroll_have_its_task() -> None:
    inputs = inputs_of(TASK)
    assert inputs.task is not None and inputs.task.shape == inputs.reward.shape
    assert (inputs.task == TASK).all()


def test_the_task_is_an_input_where_that_was_chosen() -> None:
    seen, unseen = make(task_input=True), make()
    for before, after in zip(outputs(seen, TASK), outputs(seen, OTHER_TASK), strict=True):
        assert changed_columns(before, after) == CHANGED.tolist()
    for before, after in zip(outputs(unseen, TASK), outputs(unseen, OTHER_TASK), strict=True):
        assert torch.equal(before, after)


def test_values_are_those_of_the_rows_task() -> None:
    model = make(normalise_values=True)
    assert model.popart is not None
    torch.nn.init.normal_(model.popart.weight)
    policy, values = outputs(model, TASK)
    other_policy, other_values = outputs(model, OTHER_TASK)
    assert torch.equal(policy, other_policy)
    assert changed_columns(values.unsqueeze(-1), other_values.unsqueeze(-1)) == CHANGED.tolist()


def test_one_task_is_no_input() -> None:
    with pytest.raises(ModelSpecError, match="task_input = True: there is one task"):
        make(num_tasks=1, task_input=True)


def test_a_model_of_ones_own_is_tried_and_run_with_tasks() -> None:
    model = make(model="tests.unit.learner.models.user_models:TaskBiased")
    _, before = outputs(model, TASK)
    _, after = outputs(model, OTHER_TASK)
    assert changed_columns(before.unsqueeze(-1), after.unsqueeze(-1)) == CHANGED.tolist()
