"""Opponents of an evaluation, for the agents that the evaluated policy does not play."""

import copy
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch

from kubebeast_envserver.rows.rows import HostedEnv
from kubebeast_learner.config import ConfigError, EvalConfig
from kubebeast_learner.config.plugins import describe, load_object
from kubebeast_learner.play.players import ModelPlayer, OwnPlayer, Player, RandomPlayer
from kubebeast_learner.play.trained_model import TrainedModel
from kubebeast_learner.run.state import taking_over


class Opponent(NamedTuple):
    name: str
    """Name for the table; "" if the policy plays all agents."""
    make: Callable[[HostedEnv, int], Player] | None
    """Returns the player for environments and a seed; None if the policy plays all agents."""


def opponents_of(config: EvalConfig, trained: TrainedModel) -> Iterator[Opponent]:
    """Yields the opponents of the setting, one after the other. Raises ConfigError or CheckpointError."""
    match config.against:
        case "":
            yield Opponent("", None)
        case "random":
            yield Opponent("random", _random)
        case "league":
            yield from _league(trained)
        case name:
            make = load_object("against", name)

            def own(env: HostedEnv, seed: int) -> Player:
                try:
                    player: Any = make(seed)
                except Exception as error:  # the user's code may raise anything
                    raise ConfigError(f"against = {name!r}: cannot be made: {describe(error)}") from error
                return OwnPlayer(name, player, env.spec_observation, env.spec_action)

            yield Opponent(name, own)


def _random(env: HostedEnv, seed: int) -> Player:
    return RandomPlayer(env.spec_observation, env.spec_action, env.num_envs, seed)


def _league(trained: TrainedModel) -> Iterator[Opponent]:
    """Yields the versions in the league, which sample their actions as in training."""
    versions = trained.league.get("versions", ())
    if not versions:
        raise ConfigError(f"against = 'league': {trained.place} has none: it was not trained with opponents")
    for version in versions:
        with taking_over(trained.place, "stats.league"):
            model = copy.deepcopy(trained.model)
            model.load_state_dict(dict(version["weights"]))
            name = f"{int(version['number']):,} updates"

        def player(env: HostedEnv, seed: int, model: Any = model) -> Player:
            return ModelPlayer(model, env.num_envs, "sample", torch.Generator().manual_seed(seed), trained.task)

        yield Opponent(name, player)
