"""A trained model plays whole episodes; LSTM state, last action and reward are carried as in training."""

import shlex
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import numpy as np
import torch

from kubebeast_common.env_config import EnvConfig, Wrapper, format_wrappers
from kubebeast_envserver.envs.factory import HostedEnv, num_agents_of, resolve_config
from kubebeast_learner.actors.env_spec import EnvSpec, describe
from kubebeast_learner.config import ConfigError, PlayConfig
from kubebeast_learner.config.checks import parse_env_kwargs, parse_wrappers
from kubebeast_learner.config.tools import TRAINED
from kubebeast_learner.models import Model, ModelInputs
from kubebeast_learner.models.contract import require_choice
from kubebeast_learner.play.trained_model import TrainedModel

EnvT = TypeVar("EnvT", bound=HostedEnv)


@dataclass(frozen=True, slots=True)
class PlayedEpisode:
    episode_return: float
    length: int
    cut_off: bool = False
    """Longer than max_episode_steps: the return up to there."""


@dataclass(frozen=True, slots=True)
class PlayedEnv:
    """The environment that is played, and what a reader of the score should know about the choice."""

    env_id: str
    config: EnvConfig
    notes: list[str]
    """Where it is not the training run's, and what had to be assumed."""

    @property
    def arguments(self) -> dict[str, Any]:
        """Of make_vector_env."""
        return {
            "env": self.env_id,
            "preset": self.config.preset,
            "env_kwargs": dict(self.config.kwargs),
            "wrappers": self.config.wrappers,
            "time_limit": self.config.time_limit,
        }


def choose_env(config: PlayConfig, trained: TrainedModel) -> PlayedEnv:
    """The environment of the training run, made as it was there, as far as `config` says nothing else.

    ConfigError for settings that do not go together, and for wrappers that nobody here has vouched for.
    """
    env_id = config.env or trained.env_id
    same = env_id == trained.env_id
    told = trained.env_config if same else None
    preset: Any = config.preset if config.preset != TRAINED else told.preset if told else "auto"
    kwargs = parse_env_kwargs(config.env_kwargs) if config.env_kwargs else dict(told.kwargs) if told else {}
    wrappers = _choose_wrappers(config.wrappers, told.wrappers if told else (), trained)
    time_limit = config.time_limit if config.time_limit is not None else told.time_limit if told else 0
    try:
        played = resolve_config(env_id, preset, kwargs, wrappers, time_limit)
    except ValueError as error:
        raise ConfigError(str(error)) from error
    notes = []
    if same and told is None:
        notes.append(f"the run does not tell how its environment was made; assumed: {played}")
    elif not same or played != told:
        notes.append(f"trained on {describe(trained.env_id, trained.env_config)}")
    return PlayedEnv(env_id, played, notes)


def count_agents(played: PlayedEnv) -> tuple[int, list[str]]:
    """How many agents one environment has, each with episodes of its own, and what to say of more than one.

    Raises ConfigError or EnvironmentFailure.
    """
    try:
        num_agents = num_agents_of(played.env_id, dict(played.config.kwargs), played.config.wrappers)
    except ValueError as error:
        raise ConfigError(str(error)) from error
    together = f"{num_agents} agents play together: an episode is that of one agent, and the mean is over agents"
    return num_agents, [together] * (num_agents > 1)


def _choose_wrappers(choice: str, told: tuple[Wrapper, ...], trained: TrainedModel) -> tuple[Wrapper, ...]:
    """told: what the checkpoint says, which may be the words of an env-server: no reason to import and call anything.

    ConfigError where `choice` leaves them open and they are not the user's own.
    """
    if choice not in ("", TRAINED):
        return parse_wrappers(choice)
    if choice == TRAINED or told in ((), trained.own_wrappers):
        return told
    flag = f"--wrappers {shlex.quote(format_wrappers(told))}"
    raise ConfigError(
        f"wrappers = '': {trained.path} says that {trained.env_id} was trained with {flag}: add that flag, or "
        f"--wrappers {TRAINED}, to run this code here; --wrappers '[]' plays without"
    )


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
    task: int | None = None,
) -> list[PlayedEpisode]:
    """One whole episode in each environment of `env`, in their order. task: of a model that has several.

    watch: called after the reset and after every step, the last one included.
    Raises EnvironmentFailure, also where only one of several environments fails.
    """
    played: list[PlayedEpisode | None] = [None] * env.num_envs
    running_return = np.zeros(env.num_envs)
    rows = env.reset()
    distribution = model.distribution
    last_action = distribution.none(env.num_envs)
    core_state = model.initial_state(env.num_envs)
    for _ in range(max_episode_steps):
        if watch is not None:
            watch()
        is_first = torch.from_numpy(rows.is_first)
        last_action[is_first] = 0
        inputs = ModelInputs(
            observation=tuple(torch.from_numpy(np.array(leaf)).unsqueeze(0) for leaf in rows.observation),
            reward=torch.from_numpy(np.array(rows.rewards)).unsqueeze(0),
            last_action=last_action.unsqueeze(0),
            is_first=is_first.unsqueeze(0),
            task=None if task is None else torch.full((1, env.num_envs), task),
        )
        output, core_state = model(inputs, core_state)
        policy_logits = output.policy_logits[0]
        require_choice(policy_logits, torch.from_numpy(~(rows.terminated | rows.truncated)))
        greedy = mode == "greedy"
        last_action = distribution.mode(policy_logits) if greedy else distribution.sample(policy_logits, generator)
        rows = env.step(distribution.to_leaves(last_action))
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
