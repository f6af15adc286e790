"""Every pair of an observation and an action space trains, through the native pool and as an actor process acts."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from harness.processes.training_process import rows
from kubebeast_envserver.envs.factory import make_vector_env
from kubebeast_envserver.rows.stream_status import StreamStatus
from kubebeast_learner.actors.env_spec import EnvSpec
from kubebeast_learner.actors.mono.actor import Actor, ActorTask
from kubebeast_learner.actors.mono.blocks import BlockLayout
from kubebeast_learner.actors.mono.shared_weights import SharedWeights
from kubebeast_learner.algorithm import Learner
from kubebeast_learner.commands import train
from kubebeast_learner.config import (
    ActorProcessesConfig,
    LearnerConfig,
    LossConfig,
    ModelConfig,
    MonoConfig,
    OptimizerConfig,
    PoolConfig,
    RolloutConfig,
    RunConfig,
)
from kubebeast_learner.models import make_model
from tests.integration.any_space import ACTIONS, OBSERVATIONS
from tests.integration.envserver_learner import StreamThread

NUM_UPDATES, T, B = 120, 2, 2
ENV = "tests.integration.any_space:AnySpace-v0"
PAIRS = [
    pytest.param(
        {"observation": observation, "action": action},
        id=f"{observation}, {action}",
        marks=() if j % len(OBSERVATIONS) == i else pytest.mark.slow,
    )
    for i, observation in enumerate(OBSERVATIONS)
    for j, action in enumerate(ACTIONS)
]
"""Every action space once without the mark."""


@pytest.mark.parametrize("spaces", PAIRS)
def test_env_servers_of_any_spaces_train_a_learner(spaces: dict[str, str], tmp_path: Path) -> None:
    address = f"unix:{tmp_path}/pool"
    config = LearnerConfig(
        run=RunConfig(xpid="run", savedir=tmp_path, progress="none", total_steps=NUM_UPDATES * T * B),
        rollout=RolloutConfig(unroll_length=T, batch_size=B),
        pool=PoolConfig(address=address),
        model=ModelConfig(hidden_sizes=(8,), last_action_input="on"),
    )
    with StreamThread(env=ENV, env_kwargs=spaces, address=address, envs_per_stream=16, preset="none") as stream:
        assert train.learn(config) == 0
        assert stream.status.env_restarts == 0
    last = rows(tmp_path / "run")[-1]
    assert int(last["num_updates"]) > 100
    assert last["num_skipped_updates"] == "0"


@pytest.mark.parametrize("spaces", PAIRS)
def test_environments_of_any_spaces_train_in_mono(spaces: dict[str, str], tmp_path: Path) -> None:
    env = make_vector_env(ENV, B, env_kwargs=spaces, seed=1)
    spec = EnvSpec.of(ENV, env.spec_observation, env.spec_action)
    model = make_model(spec.observation, spec.action, ModelConfig(hidden_sizes=(8,), last_action_input="on"))
    layout = BlockLayout.of(spec, T, model)
    weights = SharedWeights(model, "fp32", version=0)
    task = ActorTask(
        config=MonoConfig(actors=ActorProcessesConfig(env=ENV, env_kwargs=json.dumps(spaces))),
        num_envs=B,
        status=StreamStatus(),
        seed=1,
        layout=layout,
        memory=torch.empty(0),
        weights=weights,
        folder=tmp_path,
        name="actor-0",
        profile_window=None,
    )
    learner = Learner(model, OptimizerConfig(), LossConfig(), total_steps=10**6)
    block = layout.make(B, lambda shape, dtype: torch.zeros(shape, dtype=dtype))
    with torch.inference_mode():
        actor = Actor(task, env)
    for _ in range(NUM_UPDATES):
        with torch.inference_mode():
            actor.fill(block)
        stats = learner.update(replace(block), step=0)
        assert not stats.skipped
        weights.publish(model, stats.version)
    assert learner.version == NUM_UPDATES
    env.close()
