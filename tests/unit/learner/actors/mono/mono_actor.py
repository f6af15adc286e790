"""An actor of `kubebeast mono` without its process, and the blocks it fills."""

from pathlib import Path

import torch

from kubebeast_common.spec.env_spec import EnvSpec
from kubebeast_envserver.rows.rows import HostedEnv
from kubebeast_envserver.rows.stream_status import StreamStatus
from kubebeast_learner.actors.mono.actor import Actor, ActorTask, Seeds
from kubebeast_learner.actors.mono.blocks import BlockLayout
from kubebeast_learner.actors.mono.shared_weights import SharedWeights
from kubebeast_learner.algorithm.rollout import Rollout
from kubebeast_learner.config import ActorProcessesConfig, ModelConfig, MonoConfig
from kubebeast_learner.models import Model, make_model
from tests.unit.envserver.envs.scripted_env import NUM_ENVS, ScriptedEnv

T = 4


def make_actor(
    *, use_lstm: bool = False, env: ScriptedEnv | None = None
) -> tuple[Actor, ScriptedEnv, Model, SharedWeights, BlockLayout]:
    env = env or ScriptedEnv()
    actor, model, weights, layout = actor_in(env, use_lstm=use_lstm)
    return actor, env, model, weights, layout


def actor_in(env: HostedEnv, *, use_lstm: bool = False) -> tuple[Actor, Model, SharedWeights, BlockLayout]:
    torch.manual_seed(0)
    spec = EnvSpec.of("Scripted-v0", env.spec_observation, env.spec_action)
    model = make_model(spec.observation, spec.action, ModelConfig(model="mlp", hidden_sizes=(8,), use_lstm=use_lstm))
    weights = SharedWeights(model, "fp32", version=7)
    layout = BlockLayout.of(spec, T, model)
    task = ActorTask(
        config=MonoConfig(actors=ActorProcessesConfig(env="Scripted-v0", preset="none")),
        num_envs=env.num_envs,
        status=StreamStatus(),
        seeds=(Seeds(1, 1),),
        layout=layout,
        memory=torch.empty(0),
        weights=weights,
        folder=Path(),
        name="actor-0",
        profile_window=None,
    )
    return Actor(task, env), model, weights, layout


def empty_block(layout: BlockLayout) -> Rollout:
    return layout.make(NUM_ENVS, lambda shape, dtype: torch.full(shape, 1, dtype=dtype))


def filled_blocks(
    number: int, *, use_lstm: bool = False, env: ScriptedEnv | None = None
) -> tuple[list[Rollout], ScriptedEnv, Model]:
    actor, env, model, _, layout = make_actor(use_lstm=use_lstm, env=env)
    blocks = [empty_block(layout) for _ in range(number)]
    for block in blocks:
        actor.fill(block)
    return blocks, env, model
