"""Environments that use torch do not disturb a model in the same process."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch

from kubebeast_envserver.envs.factory import HostedEnv, make_vector_env
from kubebeast_envserver.rows.stream_status import StreamStatus
from kubebeast_learner.actors.mono.isolated_env import isolated
from kubebeast_learner.config import EvalConfig, ModelConfig
from kubebeast_learner.machine import torch_state
from kubebeast_learner.play.evaluate import evaluate
from tests.unit.learner.actors.mono import torch_envs
from tests.unit.learner.actors.mono.mono_actor import actor_in
from tests.unit.learner.play.playing import write_checkpoint

ACTIONS = [np.zeros(1, np.int64)]


@pytest.fixture(autouse=True)
def as_in_a_new_process(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(torch_state._Environments, "settings", None)
    monkeypatch.setattr(torch_state._Environments, "rng_state", None)
    before = torch_state._read()
    yield
    assert torch_state._read() == before


def made(name: str, status: StreamStatus | None = None) -> HostedEnv:
    return isolated(partial(make_vector_env, f"{torch_envs.__name__}:{name}-v0", 1, status=status))


@pytest.mark.parametrize("name", ["Sets", "Moves"])
def test_what_an_environment_sets_is_there_in_its_next_call_and_nowhere_else(name: str) -> None:
    settings = torch_state._read()
    env = made(name)
    assert torch_state._read() == settings
    env.reset()
    for _ in range(3):
        env.step(ACTIONS).require_whole()
        assert torch_state._read() == settings
    env.close()


def test_a_seed_of_an_environment_makes_its_numbers_and_not_ours() -> None:
    torch.manual_seed(5)
    expected = torch.rand(4)
    torch.manual_seed(5)
    env = made("Seeds")
    env.reset()
    drawn = [torch.rand(1)]
    for _ in range(3):
        env.step(ACTIONS).require_whole()
        drawn.append(torch.rand(1))
    assert torch.equal(torch.cat(drawn), expected)


@pytest.mark.parametrize("name", ["Learns", "Sets", "Moves", "Seeds"])
@pytest.mark.parametrize("use_lstm", [False, True])
def test_an_actor_steps_environments_that_use_gradients(name: str, use_lstm: bool) -> None:
    status = StreamStatus()
    actor, model, _, layout = actor_in(made(name, status), use_lstm=use_lstm)
    block = layout.make(1, lambda shape, dtype: torch.zeros(shape, dtype=dtype))
    episodes = [episode.length for _ in range(3) for episode in actor.fill(block)]
    assert episodes == [5, 5] and status.failures_exception == 0
    assert next(model.parameters()).dtype == torch.float32


@pytest.mark.parametrize("name", ["Learns", "Sets", "Moves", "Seeds"])
def test_environments_that_use_gradients_are_evaluated(tmp_path: Path, name: str) -> None:
    env = made(name)
    env.close()
    env_id = f"{torch_envs.__name__}:{name}-v0"
    model = ModelConfig(model="mlp", use_lstm=True)
    write_checkpoint(tmp_path / "run", env_id, env.spec_observation, env.spec_action, model)
    result = evaluate(EvalConfig(savedir=str(tmp_path), xpid="run", episodes=1))
    assert [episode.length for episode in result.episodes] == [5]
