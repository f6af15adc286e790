"""V-trace agrees with an independent reference, also at episode ends and in padding, and rejects bad arguments."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from kubebeast_learner.algorithm import vtrace
from tests.unit.learner.algorithm import vtrace_reference

THRESHOLDS = st.sampled_from([None, 0.0, 0.7, 1.0, 3.0])


def random_arguments(T: int, B: int, seed: int) -> dict[str, Any]:
    generator = torch.Generator().manual_seed(seed)
    terminated = torch.rand(T, B, generator=generator) < 0.2
    return {
        "log_rhos": torch.randn(T, B, generator=generator, dtype=torch.float64),
        "discounts": 0.9 * (~terminated).double(),
        "rewards": torch.randn(T, B, generator=generator, dtype=torch.float64),
        "values": torch.randn(T, B, generator=generator, dtype=torch.float64),
        "bootstrap_value": torch.randn(B, generator=generator, dtype=torch.float64),
        "valid": torch.rand(T, B, generator=generator) < 0.8,
    }


@settings(deadline=None, max_examples=80)
@given(
    T=st.integers(1, 12),
    B=st.integers(1, 4),
    seed=st.integers(0, 999),
    rho=THRESHOLDS,
    pg_rho=THRESHOLDS,
    c=THRESHOLDS,
    lambda_=st.sampled_from([0.0, 0.6, 1.0]),
)
def test_equals_the_definition(
    T: int, B: int, seed: int, rho: float | None, pg_rho: float | None, c: float | None, lambda_: float
) -> None:
    arguments = random_arguments(T, B, seed)
    options = {"clip_rho_threshold": rho, "clip_pg_rho_threshold": pg_rho, "clip_c_threshold": c, "lambda_": lambda_}
    returns = vtrace.from_importance_weights(**arguments, **options)  # type: ignore[arg-type]
    expected = vtrace_reference.vtrace(
        **{name: argument.numpy() for name, argument in arguments.items()},
        **options,  # type: ignore[arg-type]
    )
    np.testing.assert_allclose(returns.vs, expected.vs, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(returns.pg_advantages, expected.pg_advantages, rtol=1e-10, atol=1e-12)


def test_defaults_are_those_of_the_published_agent() -> None:
    arguments = random_arguments(6, 3, seed=6)
    returns = vtrace.from_importance_weights(**arguments)
    expected = vtrace_reference.vtrace(
        **{name: argument.numpy() for name, argument in arguments.items()},
        clip_rho_threshold=1.0,
        clip_pg_rho_threshold=1.0,
        clip_c_threshold=1.0,
        lambda_=1.0,
    )
    np.testing.assert_allclose(returns.vs, expected.vs, rtol=1e-10, atol=1e-12)


def test_lambda_zero_gives_one_step_targets() -> None:
    arguments = random_arguments(5, 2, seed=7)
    arguments["log_rhos"][:], arguments["valid"][:] = 0.0, True
    returns = vtrace.from_importance_weights(**arguments, lambda_=0.0)
    next_values = torch.cat([arguments["values"][1:], arguments["bootstrap_value"].unsqueeze(0)])
    torch.testing.assert_close(returns.vs, arguments["rewards"] + arguments["discounts"] * next_values)


def test_on_policy_targets_are_the_discounted_returns() -> None:
    rewards = torch.tensor([[1.0], [2.0], [3.0]])
    returns = vtrace.from_importance_weights(
        log_rhos=torch.zeros(3, 1),
        discounts=torch.full((3, 1), 0.5),
        rewards=rewards,
        values=torch.tensor([[7.0], [-4.0], [9.0]]),
        bootstrap_value=torch.tensor([8.0]),
    )
    torch.testing.assert_close(returns.vs, torch.tensor([[1 + 1 + 0.75 + 1], [2 + 1.5 + 2], [3.0 + 4]]))


def test_terminated_transition_bootstraps_from_nothing() -> None:
    arguments = random_arguments(4, 2, seed=1)
    arguments["valid"][:] = True
    arguments["discounts"][:] = 0.9
    arguments["discounts"][1] = 0.0
    before = vtrace.from_importance_weights(**arguments)
    arguments["values"][2:] += 100
    after = vtrace.from_importance_weights(**arguments)
    torch.testing.assert_close(before.vs[:2], after.vs[:2])
    torch.testing.assert_close(before.pg_advantages[:2], after.pg_advantages[:2])


def test_truncated_transition_bootstraps_from_the_final_observation() -> None:
    arguments = random_arguments(3, 1, seed=2)
    arguments["log_rhos"][:], arguments["discounts"][:] = 0.0, 0.9
    arguments["valid"] = torch.tensor([[True], [False], [True]])  # row 1 is final, row 2 starts the next episode
    returns = vtrace.from_importance_weights(**arguments)
    torch.testing.assert_close(returns.vs[0], arguments["rewards"][0] + 0.9 * arguments["values"][1])
    torch.testing.assert_close(returns.vs[1], arguments["values"][1])
    assert returns.pg_advantages[1] == 0


def test_garbage_in_padding_stays_there() -> None:
    arguments = random_arguments(4, 2, seed=3)
    arguments["valid"][:] = True
    arguments["valid"][2:, 1] = False
    clean = vtrace.from_importance_weights(**arguments)
    for name in ("log_rhos", "discounts", "rewards"):
        arguments[name][2:, 1] = torch.nan
    arguments["values"][3, 1] = torch.inf
    arguments["bootstrap_value"][1] = torch.nan
    dirty = vtrace.from_importance_weights(**arguments)
    torch.testing.assert_close(dirty.vs[:3], clean.vs[:3])
    torch.testing.assert_close(dirty.pg_advantages, clean.pg_advantages)


def test_from_logits_uses_the_log_ratio_of_both_policies() -> None:
    generator = torch.Generator().manual_seed(4)
    behavior, target = torch.randn(2, 6, 3, 5, generator=generator)
    actions = torch.randint(5, (6, 3), generator=generator)
    rest = {name: x.float() if name != "valid" else x for name, x in random_arguments(6, 3, seed=5).items()}
    valid = rest["valid"]
    del rest["log_rhos"]
    options: dict[str, Any] = {"clip_rho_threshold": 2.0, "clip_c_threshold": 0.8, "lambda_": 0.7}
    returns = vtrace.from_logits(behavior, target, actions, **rest, **options)

    def log_probs(logits: Tensor) -> Tensor:
        chosen = torch.distributions.Categorical(logits=logits).log_prob(actions)  # type: ignore[no-untyped-call]
        return torch.where(valid, chosen, 0.0)

    torch.testing.assert_close(returns.behavior_action_log_probs, log_probs(behavior))
    torch.testing.assert_close(returns.target_action_log_probs, log_probs(target))
    torch.testing.assert_close(returns.log_rhos, log_probs(target) - log_probs(behavior))
    expected = vtrace.from_importance_weights(returns.log_rhos, **rest, **options)
    torch.testing.assert_close(returns.vs, expected.vs)
    torch.testing.assert_close(returns.pg_advantages, expected.pg_advantages)


def test_nothing_returned_carries_a_gradient() -> None:
    logits = torch.randn(2, 1, 3, requires_grad=True)
    returns = vtrace.from_logits(
        behavior_policy_logits=torch.randn(2, 1, 3),
        target_policy_logits=logits,
        actions=torch.zeros(2, 1, dtype=torch.int64),
        discounts=torch.ones(2, 1),
        rewards=torch.ones(2, 1),
        values=torch.zeros(2, 1, requires_grad=True),
        bootstrap_value=torch.zeros(1, requires_grad=True),
    )
    assert not any(tensor.requires_grad for tensor in returns)
    assert vtrace.action_log_probs(logits, torch.zeros(2, 1, dtype=torch.int64)).requires_grad


@pytest.mark.parametrize(
    ("name", "bad", "error"),
    [
        ("log_rhos", torch.zeros(3), ValueError),
        ("log_rhos", torch.zeros(3, 2, 1), ValueError),
        ("discounts", torch.zeros(3, 1), ValueError),
        ("rewards", torch.zeros(2, 2), ValueError),
        ("values", torch.zeros(4, 2), ValueError),
        ("bootstrap_value", torch.zeros(3), ValueError),
        ("bootstrap_value", torch.zeros(1, 2), ValueError),
        ("valid", torch.ones(2, 3, dtype=torch.bool), ValueError),
        ("rewards", torch.zeros(3, 2, dtype=torch.int64), TypeError),
        ("valid", torch.ones(3, 2), TypeError),
        ("clip_rho_threshold", -1.0, ValueError),
        ("clip_c_threshold", -1.0, ValueError),
        ("lambda_", 1.1, ValueError),
    ],
)
def test_bad_argument_is_named(name: str, bad: Tensor | float, error: type[Exception]) -> None:
    arguments = {**random_arguments(3, 2, seed=0), name: bad}
    with pytest.raises(error, match=name):
        vtrace.from_importance_weights(**arguments)


@pytest.mark.parametrize(
    ("name", "shape"),
    [("behavior_policy_logits", (3, 4)), ("target_policy_logits", (3, 2, 5)), ("actions", (3, 1))],
)
def test_bad_logits_or_actions_are_named(name: str, shape: tuple[int, ...]) -> None:
    arguments = random_arguments(3, 2, seed=0)
    del arguments["log_rhos"]
    arguments["behavior_policy_logits"] = torch.zeros(3, 2, 4)
    arguments["target_policy_logits"] = torch.zeros(3, 2, 4)
    arguments["actions"] = torch.zeros(3, 2, dtype=torch.int64)
    arguments[name] = torch.zeros(shape, dtype=arguments[name].dtype)
    with pytest.raises(ValueError, match=name):
        vtrace.from_logits(**arguments)
