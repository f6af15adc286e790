"""PQN (Gallici et al. 2024, arXiv:2407.04811, algorithm 1) with the settings of CleanRL's pqn.py, for discrete actions.

Unlike there, a return does not go on into the next episode.
"""

import json
import sys
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import torch
import torch.nn.functional as F
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import FlattenObservation, RecordEpisodeStatistics
from torch import Tensor, nn

from benchmarks.learning.programs.environments import make_env
from benchmarks.learning.programs.log import Log
from benchmarks.learning.programs.threads import use_all_cores

NUM_ENVS, NUM_STEPS = 4, 128
PASSES, MINIBATCHES = 4, 4
LEARNING_RATE, MAX_GRAD_NORM = 2.5e-4, 10.0
DISCOUNTING, LAMBDA = 0.99, 0.65
LAST_EPSILON, SHARE_OF_EXPLORATION = 0.05, 0.5


def make_network(size: int, num_actions: int) -> nn.Module:
    layers: list[nn.Module] = []
    for width in (120, 84):
        layers += [_orthogonal(nn.Linear(size, width)), nn.LayerNorm(width), nn.ReLU()]
        size = width
    return nn.Sequential(*layers, _orthogonal(nn.Linear(size, num_actions)))


def _orthogonal(layer: nn.Linear) -> nn.Linear:
    nn.init.orthogonal_(layer.weight, 2**0.5)
    nn.init.zeros_(layer.bias)
    return layer


def returns_of(rewards: Tensor, ends: Tensor, next_values: Tensor) -> Tensor:
    """Returns the lambda-returns, float32 [T, B] as the arguments.

    Args:
        rewards: Rewards of the steps.
        ends: 1 if an episode ended with the step, else 0.
        next_values: Largest values of the actions after the step, ignored if an episode ended.
    """
    returns = torch.zeros_like(rewards)
    following = next_values[-1]
    for step in reversed(range(len(rewards))):
        mixed = LAMBDA * following + (1 - LAMBDA) * next_values[step]
        following = returns[step] = rewards[step] + DISCOUNTING * (1 - ends[step]) * mixed
    return returns


class Player:
    """Environments that play with exploration."""

    def __init__(self, env: str, inputs: str, seed: int, log: Log) -> None:
        def make() -> gymnasium.Env[Any, Any]:
            return RecordEpisodeStatistics(FlattenObservation(make_env(env, inputs)))

        self._envs = SyncVectorEnv([make] * NUM_ENVS, autoreset_mode=AutoresetMode.SAME_STEP)
        if not isinstance(self._envs.single_action_space, gymnasium.spaces.Discrete):
            raise SystemExit(f"PQN needs discrete actions, {env} has {self._envs.single_action_space}")
        self.num_actions = int(self._envs.single_action_space.n)
        self._log = log
        self.observation = self._tensor(self._envs.reset(seed=seed)[0])

    def step(self, network: nn.Module, epsilon: float) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Returns observations, actions, rewards and ends of one step of all environments."""
        observation = self.observation
        greedy = network(observation).argmax(dim=1)
        explored = torch.randint(0, self.num_actions, (NUM_ENVS,))
        action = torch.where(torch.rand(NUM_ENVS) < epsilon, explored, greedy)
        found, reward, terminated, truncated, info = self._envs.step(action.numpy())
        self.observation = self._tensor(found)
        if "final_info" in info:
            episodes = info["final_info"]["episode"]["r"]
            for episode_return in episodes[info["final_info"]["_episode"]]:
                self._log.add(float(episode_return))
        ended = torch.from_numpy(terminated | truncated).float()
        return observation, action, torch.from_numpy(np.asarray(reward)).float(), ended

    def _tensor(self, observation: Any) -> Tensor:
        return torch.from_numpy(np.asarray(observation, dtype=np.float32))


def train(settings: dict[str, Any]) -> None:
    """Trains once. settings: env, inputs, seed, steps and folder."""
    use_all_cores()
    torch.manual_seed(settings["seed"])
    log = Log(Path(settings["folder"]))
    player = Player(settings["env"], settings["inputs"], settings["seed"], log)
    network = make_network(player.observation.shape[1], player.num_actions)
    optimizer = torch.optim.RAdam(network.parameters(), lr=LEARNING_RATE)
    num_updates = settings["steps"] // (NUM_ENVS * NUM_STEPS)
    for update in range(num_updates):
        for group in optimizer.param_groups:
            group["lr"] = LEARNING_RATE * (1 - update / num_updates)
        progress = update / num_updates / SHARE_OF_EXPLORATION
        with torch.no_grad():
            played = [
                player.step(network, max(LAST_EPSILON, 1 - progress * (1 - LAST_EPSILON))) for _ in range(NUM_STEPS)
            ]
            observations, actions, rewards, ends = map(torch.stack, zip(*played, strict=True))
            following = torch.cat([observations[1:], player.observation.unsqueeze(0)])
            targets = returns_of(rewards, ends, network(following).amax(dim=-1))
        for _ in range(PASSES):
            order = torch.randperm(targets.numel())
            for rows in order.tensor_split(MINIBATCHES):
                values = network(observations.flatten(0, 1)[rows]).gather(1, actions.flatten()[rows].unsqueeze(1))
                optimizer.zero_grad()
                F.mse_loss(values.squeeze(1), targets.flatten()[rows]).backward()  # type: ignore[no-untyped-call]
                nn.utils.clip_grad_norm_(network.parameters(), MAX_GRAD_NORM)
                optimizer.step()
        log.write((update + 1) * NUM_ENVS * NUM_STEPS)


if __name__ == "__main__":
    train(json.loads(sys.argv[1]))
