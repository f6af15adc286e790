"""A trained model plays whole episodes; LSTM state, last action and reward are carried as in training."""

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from kubebeast_envserver.envs import HostedEnv, Preset
from kubebeast_learner.config import ConfigError, PlayConfig
from kubebeast_learner.env_spec import EnvSpec
from kubebeast_learner.models import Model, ModelInputs
from kubebeast_learner.trained import TrainedModel

EnvT = TypeVar("EnvT", bound=HostedEnv)


@dataclass(frozen=True, slots=True)
class PlayedEpisode:
    episode_return: float
    length: int
    cut_off: bool = False
    """Longer than max_episode_steps: the return up to there."""


def choose_env(config: PlayConfig, trained: TrainedModel) -> tuple[str, Preset]:
    """Environment id and preset: the configured ones, else those of the training run."""
    preset: Preset = trained.settings.get("preset", "auto") if config.preset == "train" else config.preset
    return config.env or trained.env_id, preset


def open_env(make: Callable[[], EnvT], trained: TrainedModel, env_id: str) -> closing[EnvT]:
    """The environment that `make` makes, closed at the end of the context. ConfigError where the model cannot play."""
    try:
        env = make()
    except ValueError as error:
        raise ConfigError(str(error)) from error
    played_on = EnvSpec.of(env_id, env.spec_observation, env.spec_action)
    if difference := trained.env_spec.difference(played_on):
        env.close()
        raise ConfigError(f"env = {env_id!r}: {trained.path} was trained on another environment: {difference}")
    return closing(env)


@torch.inference_mode()
def play(
    env: HostedEnv,
    model: Model,
    mode: Literal["greedy", "sample"],
    generator: torch.Generator,
    max_episode_steps: int,
    watch: Callable[[], None] | None = None,
) -> list[PlayedEpisode]:
    """One whole episode in each environment of `env`, in their order.

    watch: called after the reset and after every step, the last one included.
    Raises EnvironmentFailure, also where only one of several environments fails.
    """
    played: list[PlayedEpisode | None] = [None] * env.num_envs
    running_return = np.zeros(env.num_envs)
    rows = env.reset()
    last_action = torch.zeros(env.num_envs, dtype=torch.int64)
    core_state = model.initial_state(env.num_envs)
    for _ in range(max_episode_steps):
        if watch is not None:
            watch()
        is_first = torch.from_numpy(rows.is_first)
        inputs = ModelInputs(
            observation=tuple(torch.from_numpy(np.array(leaf)).unsqueeze(0) for leaf in rows.observation),
            reward=torch.from_numpy(np.array(rows.rewards)).unsqueeze(0),
            last_action=last_action.masked_fill(is_first, 0).unsqueeze(0),
            is_first=is_first.unsqueeze(0),
        )
        output, core_state = model(inputs, core_state)
        last_action = _choose(output.policy_logits[0], mode, generator)
        rows = env.step([_as_leaf(last_action, env.spec_action[0].dtype)])
        rows.require_whole()
        running_return += rows.rewards
        for index, episode_return, length in rows.episodes:
            played[index] = played[index] or PlayedEpisode(episode_return, length)
        if all(played):
            break
    if watch is not None:
        watch()
    return [
        episode or PlayedEpisode(float(running_return[index]), max_episode_steps, cut_off=True)
        for index, episode in enumerate(played)
    ]


def _choose(policy_logits: torch.Tensor, mode: str, generator: torch.Generator) -> torch.Tensor:
    """int64 [B] from [B, A]."""
    if mode == "greedy":
        return policy_logits.argmax(-1)
    return torch.multinomial(policy_logits.softmax(-1), 1, generator=generator).squeeze(-1)


def _as_leaf(action: torch.Tensor, dtype: str) -> NDArray[Any]:
    return action.numpy().astype(dtype)
