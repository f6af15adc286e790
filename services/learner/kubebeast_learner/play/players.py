"""Players of environments: the model, a random one, and code of the user's own."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from kubebeast_common.spec.leaves import Leaf
from kubebeast_common.user_code import describe, raise_if_interrupt
from kubebeast_envserver.rows.rows import Array, StepRows
from kubebeast_envserver.trial.trial import random_actions
from kubebeast_learner.config import ConfigError
from kubebeast_learner.models import Model, ModelInputs
from kubebeast_learner.models.contract import require_playable


class Player(Protocol):
    """A policy for all rows of environments that step together. Plays one episode after the other in each."""

    def act(self, rows: StepRows) -> Sequence[Array]:
        """Returns the actions, one array [B, *shape] per leaf; those of rows that are final or wait have no effect."""


class ModelPlayer:
    """A model; its core_state, last action and reward are carried as in training."""

    def __init__(
        self,
        model: Model,
        num_envs: int,
        mode: Literal["greedy", "sample"],
        generator: torch.Generator,
        task: int | None = None,
    ) -> None:
        """task: number of the task to play, for a model with several tasks."""
        self._model, self._is_greedy, self._generator, self._task = model, mode == "greedy", generator, task
        self._num_envs = num_envs
        self._last_action = model.distribution.none(num_envs)
        self._core_state = model.initial_state(num_envs)

    def act(self, rows: StepRows) -> Sequence[Array]:
        """See `Player.act`. Raises ModelSpecError if the outputs allow no action: they are not finite, or mask all."""
        model, distribution = self._model, self._model.distribution
        with torch.inference_mode():  # environments may use gradients, and are stepped outside
            is_first = torch.from_numpy(rows.is_first)
            self._last_action[is_first] = 0
            inputs = ModelInputs(
                observation=tuple(torch.from_numpy(np.array(leaf)).unsqueeze(0) for leaf in rows.observation),
                reward=torch.from_numpy(np.array(rows.rewards)).unsqueeze(0),
                last_action=self._last_action.unsqueeze(0),
                is_first=is_first.unsqueeze(0),
                task=None if self._task is None else torch.full((1, self._num_envs), self._task),
            )
            output, core_state = model(inputs, self._core_state)
            policy_logits = output.policy_logits[0]
            require_playable(policy_logits, torch.from_numpy(~(rows.terminated | rows.truncated)))
            drawn = (
                distribution.mode(policy_logits)
                if self._is_greedy
                else distribution.sample(policy_logits, self._generator)
            )
            action = distribution.squashed(drawn)
            self._keep(action, core_state, rows.waiting)
            return distribution.to_leaves(action)

    def _keep(self, action: torch.Tensor, core_state: Any, waiting: NDArray[np.bool_]) -> None:
        """Keeps action and state for the next rows; those of agents that wait stay, as for them there is no step."""
        if waiting.any():
            stays = torch.from_numpy(waiting)
            core_state = tuple(
                torch.where(stays.reshape(1, -1, *[1] * (after.ndim - 2)), before, after)
                for before, after in zip(self._core_state, core_state, strict=True)
            )
            action = torch.where(stays.reshape(-1, *[1] * (action.ndim - 1)), self._last_action, action)
        self._last_action, self._core_state = action.clone(), core_state


class RandomPlayer:
    """Any allowed action."""

    def __init__(self, observation: Sequence[Leaf], action: Sequence[Leaf], num_envs: int, seed: int) -> None:
        self._observation, self._action, self._num_envs = observation, action, num_envs
        self._generator = np.random.default_rng(seed)

    def act(self, rows: StepRows) -> Sequence[Array]:
        """See `Player.act`."""
        masks = [rows.observation[index] for index, leaf in enumerate(self._observation) if leaf.is_action_mask]
        return random_actions(self._action, masks[0] if masks else None, self._num_envs, self._generator)


class OwnPlayer:
    """An object of the user's own with `act(observation)`, called for one row at a time.

    observation: the row's array; a mapping from the paths of the leaves to arrays if there are several, such as
    "observation" and "action_mask". The result is the action, an array or number of the shape of the only action leaf.
    """

    def __init__(self, name: str, player: Any, observation: Sequence[Leaf], action: Sequence[Leaf]) -> None:
        """Raises ConfigError if the object has no `act`, or the actions have several leaves."""
        if not callable(getattr(player, "act", None)):
            raise ConfigError(f"against = {name!r}: it lacks act")
        if len(action) != 1:
            raise ConfigError(f"against = {name!r}: plays actions of one leaf, and there are {len(action)}")
        self._name, self._player = name, player
        self._paths, self._leaf = [leaf.path for leaf in observation], action[0]

    def act(self, rows: StepRows) -> Sequence[Array]:
        """See `Player.act`. Raises ConfigError if the user's code raises, or returns no action."""
        num_envs = len(rows.rewards)
        actions = np.zeros((num_envs, *self._leaf.shape), self._leaf.dtype)
        idle = rows.terminated | rows.truncated | (rows.waiting if rows.waiting.size else False)
        for row in np.flatnonzero(~idle):
            leaves = [leaf[row] for leaf in rows.observation]
            observation: Array | Mapping[str, Array] = dict(zip(self._paths, leaves, strict=True))
            try:
                action = self._player.act(leaves[0] if self._paths == [""] else observation)
                actions[row] = np.asarray(action).astype(self._leaf.dtype).reshape(self._leaf.shape)
            except Exception as error:  # the user's code may raise anything
                raise_if_interrupt(error)
                raise ConfigError(f"against = {self._name!r}: act: {describe(error)}") from error
            if (
                self._leaf.num_categories
                and not ((actions[row] >= 0) & (actions[row] < self._leaf.num_categories)).all()
            ):
                raise ConfigError(f"against = {self._name!r}: act returned {action!r:.100}, which is no action")
        return [actions]


class Match:
    """A player against an opponent that plays all other agents. The agent of the player changes by environment."""

    def __init__(self, player: Player, opponent: Player, num_envs: int, num_agents: int) -> None:
        self._player, self._opponent = player, opponent
        environments, agents = np.divmod(np.arange(num_envs), num_agents)
        self.rows: NDArray[np.bool_] = agents == environments % num_agents
        """bool [B]: those of the player."""

    def act(self, rows: StepRows) -> Sequence[Array]:
        """See `Player.act`. To the opponent, the agent of the player always waits."""
        theirs = replace(rows, waiting=self.rows | rows.waiting if rows.waiting.size else self.rows)
        pairs = zip(self._player.act(rows), self._opponent.act(theirs), strict=True)
        return [np.where(self.rows.reshape(-1, *[1] * (own.ndim - 1)), own, other) for own, other in pairs]
