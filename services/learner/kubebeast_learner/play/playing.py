"""Whole episodes of a trained model; LSTM state, last action and reward are carried as in training."""

import shlex
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import numpy as np
import torch

from kubebeast_common.spec.env_config import EnvConfig, Wrapper, format_wrappers
from kubebeast_common.spec.env_spec import EnvSpec, describe
from kubebeast_envserver.envs.factory import HostedEnv, module_of, num_agents_of, resolve_config
from kubebeast_envserver.envs.registration import name_one_environment
from kubebeast_envserver.rows.episodes import InfoNumbers
from kubebeast_learner.actors.mono.isolated_env import isolated
from kubebeast_learner.config import ConfigError, PlayConfig
from kubebeast_learner.config.checks import parse_env_kwargs, parse_wrappers
from kubebeast_learner.config.play import TRAINED
from kubebeast_learner.machine import torch_state
from kubebeast_learner.models import Model
from kubebeast_learner.play.players import Match, ModelPlayer, Player
from kubebeast_learner.play.trained_model import TrainedModel

EnvT = TypeVar("EnvT", bound=HostedEnv)


@dataclass(frozen=True, slots=True)
class PlayedEpisode:
    episode_return: float
    length: int
    cut_off: bool = False
    """True if it is longer than max_episode_steps; the return is that of the played steps."""
    info: Sequence[float] = ()
    """One number for each key of the run's log_info, NaN if its last info has none; or empty."""
    level: str = ""
    """Options of its reset, a JSON object; "" without any."""
    opponent: str = ""
    """Name of the opponent that played the other agents; "" without one."""


@dataclass(frozen=True, slots=True)
class PlayedEnv:
    """The environment to play, and notes on its choice for readers of the score."""

    env_id: str
    config: EnvConfig
    notes: list[str]
    """Differences from the environment of the training run, and assumptions."""

    @property
    def arguments(self) -> dict[str, Any]:
        """Arguments of make_vector_env."""
        return {
            "env": self.env_id,
            "preset": self.config.preset,
            "env_kwargs": dict(self.config.kwargs),
            "wrappers": self.config.wrappers,
            "time_limit": self.config.time_limit,
        }


def choose_env(config: PlayConfig, trained: TrainedModel) -> PlayedEnv:
    """Returns the environment of the training run, made as it was there unless `config` overrides it.

    Raises ConfigError if settings contradict each other, or for code that the user has not approved.
    """
    env_id = config.env or trained.env_id
    module = module_of(env_id)
    if module and not config.env and not trained.is_trusted:
        raise ConfigError(
            f"env = '': {trained.place} records that it was trained on {env_id!r}, which imports {module}: add "
            f"--env {shlex.quote(env_id)} or --trust-checkpoint to run this code here"
        )
    same = name_one_environment(env_id, trained.env_id)
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
        notes.append(f"the run does not record the settings of its environment; assumed: {played}")
    elif not same or played != told:
        notes.append(f"trained on {describe(trained.env_id, trained.env_config)}")
    return PlayedEnv(env_id, played, notes)


def count_agents(played: PlayedEnv) -> tuple[int, list[str]]:
    """Returns the number of agents of one environment, each with its own episodes, and a note if there are several.

    Raises ConfigError or EnvironmentFailure.
    """
    try:
        with torch_state.of_environments():
            num_agents = num_agents_of(played.env_id, dict(played.config.kwargs), played.config.wrappers)
    except ValueError as error:
        raise ConfigError(str(error)) from error
    together = f"{num_agents} agents play together: an episode is that of one agent, and the mean is over agents"
    return num_agents, [together] * (num_agents > 1)


def _choose_wrappers(choice: str, told: tuple[Wrapper, ...], trained: TrainedModel) -> tuple[Wrapper, ...]:
    """Returns the wrappers to play with; `told` are those in the checkpoint.

    They may be from an env-server, which is no reason to import and call code. Raises ConfigError if `choice` leaves
    them open and they are not the user's own.
    """
    if choice not in ("", TRAINED):
        return parse_wrappers(choice)
    if choice == TRAINED or told in ((), trained.own_wrappers):
        return told
    flag = f"--wrappers {shlex.quote(format_wrappers(told))}"
    raise ConfigError(
        f"wrappers = '': {trained.place} records that {trained.env_id} was trained with {flag}: add that flag, or "
        f"--wrappers {TRAINED}, to run this code here; --wrappers '[]' plays without"
    )


def open_env(make: Callable[[], EnvT], trained: TrainedModel, env_id: str) -> closing[EnvT]:
    """Opens the environment of `make` as a context manager. Raises ConfigError if the model cannot play it."""
    try:
        env = isolated(make)
    except ValueError as error:
        raise ConfigError(str(error)) from error
    played_on = EnvSpec.of(env_id, env.spec_observation, env.spec_action)
    if difference := trained.env_spec.difference(played_on):
        env.close()
        raise ConfigError(f"env = {env_id!r}: {trained.place} was trained on another environment: {difference}")
    return closing(env)


def play(
    env: HostedEnv,
    model: Model,
    mode: Literal["greedy", "sample"],
    generator: torch.Generator,
    max_episode_steps: int,
    watch: Callable[[], None] | None = None,
    task: int | None = None,
    log_info: Sequence[str] = (),
    opponent: Player | None = None,
) -> list[PlayedEpisode]:
    """Plays one whole episode in each environment of `env`, and returns them in this order.

    Args:
        watch: Called after the reset and after every step, including the last one.
        task: Number of the task to play, for a model with several tasks.
        log_info: Keys of numbers in the last info of an episode.
        opponent: Plays all agents of an environment but one, which differs from environment to environment; only the
            episodes of the others are returned. None if the model plays all.

    Raises:
        EnvironmentFailure: If any of the environments fails.
        ModelSpecError: If the model's outputs allow no action: they are not finite, or mask all actions.
    """
    player: Player = ModelPlayer(model, env.num_envs, mode, generator, task)
    counted = np.ones(env.num_envs, np.bool_)
    if opponent is not None:
        player = match = Match(player, opponent, env.num_envs, env.num_agents)
        counted = match.rows
    played: list[PlayedEpisode | None] = [None] * env.num_envs
    numbers = InfoNumbers(log_info)
    running_return = np.zeros(env.num_envs)
    rows = env.reset()
    for _ in range(max_episode_steps * (env.num_agents if env.takes_turns else 1)):
        if watch is not None:
            watch()
        rows = env.step(list(player.act(rows)))
        rows.require_whole()
        running_return += rows.rewards
        for index, episode_return, length in rows.episodes:
            info = numbers.read(rows, index)
            played[index] = played[index] or PlayedEpisode(episode_return, length, info=info)
        if all(episode is not None or not counts for episode, counts in zip(played, counted, strict=True)):
            break
    if watch is not None:
        watch()
    return [
        episode or PlayedEpisode(float(running_return[index]), max_episode_steps, cut_off=True)
        for index, episode in enumerate(played)
        if counted[index]
    ]
