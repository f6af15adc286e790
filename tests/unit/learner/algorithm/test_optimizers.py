"""RMSProp's step is exact; optimizers of users by import path train, resume, and are checked at the start."""

from copy import deepcopy
from typing import Any

import pytest
import torch

from kubebeast_learner.algorithm.learner import Learner
from kubebeast_learner.algorithm.optimizers import check_optimizer, make_optimizer
from kubebeast_learner.config import ConfigError, LossConfig, OptimizerConfig
from tests.unit.learner.algorithm.learning_data import make_mlp, random_rollout

MODULE = "tests.unit.learner.algorithm.user_optimizers"


def make_learner(config: OptimizerConfig) -> Learner:
    return Learner(make_mlp(), config, LossConfig(), schedule_steps=1000)


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_rmsprop_steps_as_pytorchs_does(momentum: float) -> None:
    config = OptimizerConfig(learning_rate=0.05, alpha=0.9, epsilon=1e-3, momentum=momentum)
    start = torch.randn(2, 3, 4, 5).contiguous(memory_format=torch.channels_last)
    ours, theirs = torch.nn.Parameter(start.clone()), torch.nn.Parameter(start.clone())
    without_gradient = torch.nn.Parameter(torch.ones(1))
    optimizers = [
        make_optimizer([ours, without_gradient], config),
        torch.optim.RMSprop([theirs], lr=0.05, alpha=0.9, eps=1e-3, momentum=momentum),
    ]
    for _ in range(5):
        gradient = torch.randn_like(start)
        ours.grad, theirs.grad = gradient.clone(), gradient.clone()
        for optimizer in optimizers:
            optimizer.step()
        torch.testing.assert_close(ours, theirs)
        torch.testing.assert_close(ours.grad, gradient)
    assert without_gradient == 1.0


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("torch.optim:AdamW", '{"weight_decay": 0.1, "betas": [0.8, 0.9]}'),
        ("torch.optim:SGD", "{}"),
        (f"{MODULE}:Momentum", '{"friction": 0.25}'),
    ],
)
def test_a_users_optimizer_follows_the_schedule_and_resumes_exactly(name: str, options: str) -> None:
    config = OptimizerConfig(optimizer=name, optimizer_options=options, learning_rate=1e-3)
    check_optimizer(config, make_mlp())
    learner = make_learner(config)
    for step in (0, 100):
        learner.update(random_rollout(seed=step), step)
    assert [group["lr"] for group in learner.optimizer.param_groups] == pytest.approx([0.9e-3])

    restored = make_learner(config)
    restored.load_state_dict(deepcopy(learner.state_dict()))
    for each in (learner, restored):
        each.update(random_rollout(seed=2), 200)
    torch.testing.assert_close(restored.model.state_dict(), learner.model.state_dict(), rtol=0, atol=0)


def test_options_reach_the_optimizer() -> None:
    config = OptimizerConfig(optimizer="torch.optim:AdamW", optimizer_options='{"weight_decay": 0.125}')
    assert make_optimizer(make_mlp().parameters(), config).param_groups[0]["weight_decay"] == 0.125


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        (f"{MODULE}:not_a_class", "{}", "optimizer = .*must be a subclass of torch.optim.Optimizer, it is <function"),
        ("torch.optim:Adamm", "{}", "optimizer = 'torch.optim:Adamm': .*has no Adamm"),
        ("torch.optim:AdamW", '{"weight_decoy": 1}', r"optimizer_options = .*AdamW\(params, lr=.*'weight_decoy'"),
        ("torch.optim:AdamW", '{"betas": 3}', r"optimizer = .*AdamW\(parameters, lr=0.00048\): TypeError"),
        ("torch.optim:AdamW", '{"lr": 1}', "optimizer_options = .*lr is the setting learning_rate"),
        (f"{MODULE}:Fails", "{}", r"Fails\(parameters, lr=0.00048\): ValueError: not today \(user_optimizers.py, line"),
        (f"{MODULE}:NeedsAClosure", "{}", "failed: TypeError: .*closure"),
        (f"{MODULE}:KeepsObjects", "{}", "failed: UnpicklingError"),
        (f"{MODULE}:Explodes", "{}", "its first steps leave weights that are not finite"),
    ],
)
def test_every_breach_is_explained(name: str, options: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        check_optimizer(OptimizerConfig(optimizer=name, optimizer_options=options), make_mlp())


@pytest.mark.parametrize("name", ["rmsprop", "torch.optim:AdamW"])
def test_the_check_leaves_model_and_seed_alone(name: str) -> None:
    model = make_mlp()
    before: dict[str, Any] = {key: tensor.clone() for key, tensor in model.state_dict().items()}
    torch.manual_seed(1)
    check_optimizer(OptimizerConfig(optimizer=name), model)
    drawn = torch.rand(1)
    torch.manual_seed(1)
    assert torch.equal(drawn, torch.rand(1))
    torch.testing.assert_close(model.state_dict(), before, rtol=0, atol=0)
    assert all(parameter.grad is None for parameter in model.parameters())
