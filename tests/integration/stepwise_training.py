"""A training without a clock: an actor of `kubebeast mono` and the learner in turns, in one thread.

Each block is played by the weights of the update before. So the result depends only on the seed and on the processor's
arithmetic, however busy the machine is.
"""

from collections import deque
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import torch

from kubebeast_common.cli.settings import section_from_settings
from kubebeast_common.spec.env_spec import EnvSpec
from kubebeast_envserver.envs.factory import make_vector_env
from kubebeast_envserver.rows.stream_status import StreamStatus
from kubebeast_learner.actors.mono.actor import Actor, ActorTask, Seeds
from kubebeast_learner.actors.mono.blocks import BlockLayout
from kubebeast_learner.actors.mono.shared_weights import SharedWeights
from kubebeast_learner.algorithm import Learner
from kubebeast_learner.config import (
    ActorProcessesConfig,
    LossConfig,
    ModelConfig,
    MonoConfig,
    OptimizerConfig,
    RolloutConfig,
    RunConfig,
)
from kubebeast_learner.models import make_model

RECENT_EPISODES = 100


def steps_until(mean_return: float, env_id: str, settings: Mapping[str, object], *, seed: int = 1) -> int | None:
    """Returns the env-steps until the newest RECENT_EPISODES reach `mean_return`; None if total_steps do not suffice.

    settings: flat, as in a recipe; num_actors is batch_size, a block is a batch.
    """
    rollout = section_from_settings(RolloutConfig, settings)
    total_steps = section_from_settings(RunConfig, settings).total_steps
    torch.manual_seed(seed)
    env = make_vector_env(env_id, rollout.batch_size, seed=seed)
    with closing(env):
        spec = EnvSpec.of(env_id, env.spec_observation, env.spec_action)
        model = make_model(spec.observation, spec.action, section_from_settings(ModelConfig, settings))
        layout = BlockLayout.of(spec, rollout.unroll_length, model)
        weights = SharedWeights(model, "fp32", version=0)
        task = ActorTask(
            config=MonoConfig(actors=ActorProcessesConfig(env=env_id)),
            num_envs=rollout.batch_size,
            status=StreamStatus(),
            seeds=(Seeds(seed, seed),),
            layout=layout,
            memory=torch.empty(0),
            weights=weights,
            folder=Path(),
            name="actor-0",
            profile_window=None,
        )
        loss = section_from_settings(LossConfig, settings)
        optimizer = section_from_settings(OptimizerConfig, settings)
        learner = Learner(model, optimizer, loss, schedule_steps=total_steps, compile="off")
        block = layout.make(rollout.batch_size, lambda shape, dtype: torch.zeros(shape, dtype=dtype))
        returns: deque[float] = deque(maxlen=RECENT_EPISODES)
        with torch.inference_mode():
            actor = Actor(task, env)
        step = 0
        while step < total_steps:
            with torch.inference_mode():
                returns += [episode.episode_return for episode in actor.fill(block)]
            if len(returns) == RECENT_EPISODES and sum(returns) / RECENT_EPISODES >= mean_return:
                return step
            stats = learner.update(replace(block), step)
            weights.publish(model, stats.version)
            step += stats.num_transitions
    return None
