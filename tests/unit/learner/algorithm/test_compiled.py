"""A compiled update equals the eager one, which replaces it if the compiler fails."""

import functools
import logging
import subprocess
import sys
from copy import deepcopy
from typing import Any

import pytest
import torch
from torch._inductor import config as inductor

from kubebeast_learner.algorithm.made_up import made_up_rollout
from kubebeast_learner.algorithm.rollout import Rollout
from kubebeast_learner.config import LossConfig, ModelConfig
from kubebeast_learner.config.learning import BoundedActions
from kubebeast_learner.distributions import normal
from kubebeast_learner.models import make_model
from tests.unit.learner.algorithm.learning_data import VECTOR, Leaf, make_mlp, random_rollout
from tests.unit.learner.algorithm.test_learner import make_learner, weights

CHEAP_COMPILER = {
    "compile_threads": 1,  # further ones would be processes, each of which imports torch
    "cpp.simdlen": 1,  # else it first compiles programs that detect the CPU's features
    "aot_inductor.debug_compile": True,  # -O0
}
"""Options of the default backend that shorten compilation; the results stay the same."""


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_compiled_update_equals_the_eager_one_and_is_compiled_once() -> None:
    torch.compiler.reset()
    loss = LossConfig(entropy_cost=0.1, entropy_schedule="cosine")
    eager, compiled = (make_learner(loss=loss, compile=compile) for compile in ("off", "on"))
    for seed in (1, 2, 3):
        with inductor.patch(CHEAP_COMPILER):
            expected, actual = (
                learner.update(random_rollout(2, 2, seed=seed), 100 * seed) for learner in (eager, compiled)
            )
        assert actual.total_loss == pytest.approx(expected.total_loss, rel=1e-4)
    torch.testing.assert_close(weights(compiled), weights(eager), rtol=1e-4, atol=1e-6)
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == 1


def test_a_compiled_update_leaves_the_memory_out(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.compiler.reset()
    monkeypatch.setattr(torch, "compile", functools.partial(torch.compile, backend="eager"))
    model = make_mlp(use_lstm=True)
    eager, compiled = (make_learner(model=deepcopy(model), compile=compile) for compile in ("off", "on"))
    for seed in (1, 2, 3):
        for learner in (eager, compiled):
            learner.update(random_rollout(seed=seed, core_state=model.initial_state(4)), 0)
    torch.testing.assert_close(weights(compiled), weights(eager))
    (break_reason,) = torch._dynamo.utils.counters["graph_break"]
    assert "torch.compiler.disable" in break_reason


@pytest.mark.parametrize("bounded_actions", ["tanh", "clip"])
def test_a_compiled_update_of_bounded_actions_is_one_graph(
    monkeypatch: pytest.MonkeyPatch, bounded_actions: BoundedActions
) -> None:
    torch.compiler.reset()
    torch._dynamo.utils.counters.clear()
    monkeypatch.setattr(torch, "compile", functools.partial(torch.compile, backend="eager"))
    monkeypatch.setattr(normal, "_quadratures", {})  # as in a process that has made no update yet
    action = Leaf((2,), "float32", "action", bounded=True)
    config = ModelConfig(model="mlp", hidden_sizes=(8,), bounded_actions=bounded_actions)
    model = make_model([VECTOR], [action], config)
    learner = make_learner(model=model, compile="on")

    for step in range(3):
        learner.update(made_up_rollout(model, [VECTOR], unroll_length=2, batch_size=2), step)

    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == 1
    assert not torch._dynamo.utils.counters["graph_break"]


def test_a_process_that_acts_does_not_load_the_compiler() -> None:
    code = "import sys, kubebeast_learner.actors.mono.actor_process; sys.exit('torch._dynamo' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0


def assert_updates_are_eager(caplog: pytest.LogCaptureFixture, reason: str) -> None:
    """Compares updates with those of a learner that is not to compile, and the only warning with `reason`."""
    eager, learner = make_learner(compile="off"), make_learner(compile="on")
    with caplog.at_level(logging.WARNING):
        for each in (eager, learner):
            each.update(random_rollout(), 0)
            each.update(random_rollout(), 0)
    torch.testing.assert_close(weights(learner), weights(eager), rtol=0, atol=0)
    assert [record.getMessage() for record in caplog.records] == [
        f"torch.compile failed, the update runs without it: {reason}"
    ]


def test_without_a_working_compiler_the_update_runs_eagerly(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def no_compiler(function: object, **options: object) -> object:
        def fail(rollout: Rollout, entropy_cost: torch.Tensor) -> object:
            raise RuntimeError("no C++ compiler\nlong explanation")

        return fail

    monkeypatch.setattr(torch, "compile", no_compiler)
    assert_updates_are_eager(caplog, "no C++ compiler")


def test_an_update_of_a_later_layout_that_does_not_compile_runs_eagerly(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def compile(function: Any, **options: object) -> object:
        def forward(rollout: Rollout, entropy_cost: torch.Tensor) -> object:
            if rollout.batch_size > 4:
                raise RuntimeError("no kernel for so many columns")
            return function(rollout, entropy_cost)

        return forward

    monkeypatch.setattr(torch, "compile", compile)
    eager, learner = make_learner(compile="off"), make_learner(compile="on")
    with caplog.at_level(logging.WARNING):
        for batch_size in (4, 6, 4, 6):
            for each in (eager, learner):
                each.update(random_rollout(batch_size=batch_size), 0)
    torch.testing.assert_close(weights(learner), weights(eager), rtol=0, atol=0)
    (warning,) = [record.getMessage() for record in caplog.records]
    assert warning == "torch.compile failed, the update runs without it: no kernel for so many columns"


class _NoBackward(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, total: torch.Tensor) -> torch.Tensor:
        return total.clone()

    @staticmethod
    def backward(context: Any, *gradients: torch.Tensor) -> torch.Tensor:
        raise RuntimeError("no kernel for the backward pass\nlong explanation")


def test_an_update_whose_backward_pass_does_not_compile_runs_eagerly(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def compile(function: Any, **options: object) -> object:
        def forward(rollout: Rollout, entropy_cost: torch.Tensor) -> object:
            loss = function(rollout, entropy_cost)
            return loss._replace(total=_NoBackward.apply(loss.total))  # type: ignore[no-untyped-call]

        return forward

    monkeypatch.setattr(torch, "compile", compile)
    assert_updates_are_eager(caplog, "no kernel for the backward pass")
