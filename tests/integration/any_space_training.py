"""Trainings that learn a pair of an observation space and an action space."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from _pytest.mark.structures import ParameterSet

from harness.processes.training_process import rows
from kubebeast_common.spec.env_spec import EnvSpec
from kubebeast_envserver.envs.factory import make_vector_env
from kubebeast_envserver.rows.stream_status import StreamStatus
from kubebeast_learner.actors.mono.actor import Actor, ActorTask, Seeds
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


def pairs(*, diagonal: bool) -> list[ParameterSet]:
    """Returns spaces of an environment: the pairs in which every action space occurs once, or all others."""
    return [
        pytest.param({"observation": observation, "action": action}, id=f"{observation}, {action}")
        for i, observation in enumerate(OBSERVATIONS)
        for j, action in enumerate(ACTIONS)
        if (j % len(OBSERVATIONS) == i) == diagonal
    ]


def train_by_env_servers(spaces: dict[str, str], tmp_path: Path) -> None:
    """Runs some updates by a real learner and env-server; raises AssertionError if one of them is skipped."""
    address = f"unix:{tmp_path}/pool"
    config = LearnerConfig(
        run=RunConfig(xpid="run", savedir=str(tmp_path), progress="none", total_steps=NUM_UPDATES * T * B),
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


def train_in_mono(spaces: dict[str, str], tmp_path: Path) -> None:
    """Runs the same by an actor and a learner of `kubebeast mono` in this process."""
    env = make_vector_env(ENV, B, env_kwargs=spaces, seed=1)
    spec = EnvSpec.of(ENV, env.spec_observation, env.spec_action)
    model = make_model(spec.observation, spec.action, ModelConfig(hidden_sizes=(8,), last_action_input="on"))
    layout = BlockLayout.of(spec, T, model)
    weights = SharedWeights(model, "fp32", version=0)
    task = ActorTask(
        config=MonoConfig(actors=ActorProcessesConfig(env=ENV, env_kwargs=json.dumps(spaces))),
        num_envs=B,
        status=StreamStatus(),
        seeds=(Seeds(1, 1),),
        layout=layout,
        memory=torch.empty(0),
        weights=weights,
        folder=tmp_path,
        name="actor-0",
        profile_window=None,
    )
    learner = Learner(model, OptimizerConfig(), LossConfig(), schedule_steps=10**6)
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
