"""PPO in one file on a fleet of env-servers, without KubeBeast's learner. Learns CartPole:

python examples/fleet_ppo.py --address 127.0.0.1:4431 &
kubebeast-envserver --env CartPole-v1 --address 127.0.0.1:4431 --num-streams 4 --envs-per-stream 2

Env-servers may leave and join during the training. Schulman et al. 2017, https://arxiv.org/abs/1707.06347, in the style
of CleanRL. T steps, N environments; arrays are time-major. With AutoresetMode.NEXT_STEP, the row after the last one of
an episode is the first of the next, and the step between them is not a transition.
"""

import contextlib
import signal
import sys
import time
from collections import deque
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import tyro
from gymnasium.spaces import Box, Discrete
from torch import Tensor, nn
from torch.distributions import Categorical

from kubebeast_fleet import FleetVectorEnv


@dataclass
class Args:
    address: str = "127.0.0.1:4431"
    """Address on which to listen for env-servers."""
    token_file: str = ""
    """File of bearer tokens, one of which an env-server must send; if empty, none is required."""
    http_address: str = ""
    """Address of /healthz, /readyz and /metrics; if empty, they are not served."""
    num_envs: int = 8
    """Environments that step together (N); more wait in reserve."""
    total_steps: int = 100_000
    """Rows to train for."""
    target_return: float = float("inf")
    """Mean return of the newest 100 episodes at which the training ends."""
    rollout_length: int = 32
    """Rows of each environment between two updates (T)."""
    learning_rate: float = 0.001
    """Initial learning rate; it decays linearly to 0."""
    num_epochs: int = 20
    """Passes over a rollout."""
    num_minibatches: int = 1
    """Minibatches in a pass."""
    gamma: float = 0.98
    """Discount factor."""
    gae_lambda: float = 0.8
    """Lambda of the generalized advantage estimation."""
    clip: float = 0.2
    """Range in which the ratio of probabilities is clipped around 1."""
    value_cost: float = 0.5
    """Weight of the value loss."""
    entropy_cost: float = 0.0
    """Weight of the entropy bonus."""
    max_grad_norm: float = 0.5
    """Maximum norm of the gradient; larger gradients are scaled down to it."""
    seed: int = 1
    """Seed of the weights and the actions; env-servers seed their environments."""


class Agent(nn.Module):
    """A policy and a value function, as separate networks of two hidden layers each."""

    def __init__(self, num_inputs: int, num_actions: int) -> None:
        super().__init__()
        self.policy = self._network(num_inputs, num_actions, gain=0.01)
        self.value = self._network(num_inputs, 1, gain=1.0)

    def _network(self, num_inputs: int, num_outputs: int, gain: float) -> nn.Sequential:
        last = nn.Linear(64, num_outputs)
        network = nn.Sequential(nn.Linear(num_inputs, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), last)
        for layer in network:
            if isinstance(layer, nn.Linear):
                nn.init.orthogonal_(layer.weight, gain if layer is last else 2**0.5)
                nn.init.zeros_(layer.bias)
        return network

    def forward(self, observations: Tensor) -> tuple[Categorical, Tensor]:
        return Categorical(logits=self.policy(observations)), self.value(observations).squeeze(-1)


@dataclass
class Rollout:
    """T + 1 rows of N environments, and the actions at the first T of them."""

    observations: Tensor  # [T+1, N, D]
    rewards: Tensor  # [T+1, N]: on arrival at the row
    terminated: Tensor  # bool [T+1, N]
    truncated: Tensor  # bool [T+1, N]
    lost: Tensor  # bool [T+1, N]
    actions: Tensor  # [T, N]
    log_probs: Tensor  # [T, N]

    def is_valid(self) -> Tensor:
        """Returns bool [T, N]: True if the action led to the next row, so neither at an episode's end nor at a loss."""
        return ~(self.terminated | self.truncated)[:-1] & ~self.lost[1:]


class Collector:
    """Collects rollouts of `length` rows, and the returns of the newest episodes."""

    def __init__(self, envs: FleetVectorEnv, agent: Agent, length: int) -> None:
        self.returns: deque[float] = deque(maxlen=100)
        self.num_lost = 0
        self._envs, self._agent, self._length = envs, agent, length
        observations, info = envs.reset()
        zeros = np.zeros(envs.num_envs, np.float32)
        self._row: tuple[Any, ...] = observations, zeros, zeros > 0, zeros > 0, info["lost"]
        self._running = np.zeros(envs.num_envs)

    def collect(self) -> Rollout:
        rows, actions, log_probs = [self._row], [], []
        for _ in range(self._length):
            with torch.no_grad():
                policy, _ = self._agent(torch.as_tensor(self._row[0]))
            action = policy.sample()
            *row, info = self._envs.step(action.numpy())
            self._row = *row, info["lost"]
            rows.append(self._row)
            actions.append(action)
            log_probs.append(policy.log_prob(action))
            self._count(*self._row[1:])
        observations, rewards, terminated, truncated, lost = (
            torch.as_tensor(np.stack(column)) for column in zip(*rows, strict=True)
        )
        acted = torch.stack(actions), torch.stack(log_probs)
        return Rollout(observations, rewards, terminated, truncated, lost, *acted)

    def _count(self, rewards: Any, terminated: Any, truncated: Any, lost: Any) -> None:
        self._running += rewards
        ended = terminated | truncated
        self.returns.extend(self._running[ended & ~lost])
        self._running[ended] = 0.0
        self.num_lost += int(lost.sum())


def advantages_of(rollout: Rollout, values: Tensor, gamma: float, gae_lambda: float) -> Tensor:
    """Returns advantages [T, N] from values [T+1, N]; truncated episodes bootstrap from their last observation."""
    goes_on = ~(rollout.terminated | rollout.truncated)
    deltas = rollout.rewards[1:] + gamma * values[1:] * ~rollout.terminated[1:] - values[:-1]
    valid = rollout.is_valid()
    advantages = torch.zeros_like(deltas)
    following = torch.zeros_like(deltas[0])
    for t in reversed(range(len(deltas))):
        following = (deltas[t] + gamma * gae_lambda * goes_on[t + 1] * following) * valid[t]
        advantages[t] = following
    return advantages


def update(agent: Agent, optimizer: torch.optim.Optimizer, rollout: Rollout, args: Args) -> None:
    """Trains the agent with several passes over the transitions of a rollout."""
    with torch.no_grad():
        _, values = agent(rollout.observations)
    advantages = advantages_of(rollout, values, args.gamma, args.gae_lambda)
    targets = advantages + values[:-1]
    transitions = rollout.is_valid().flatten().nonzero().squeeze(-1)
    flat = [part.flatten(0, 1) for part in (rollout.observations[:-1], rollout.actions, rollout.log_probs)]
    flat += [advantages.flatten(), targets.flatten()]
    for _ in range(args.num_epochs):
        for chosen in transitions[torch.randperm(len(transitions))].chunk(args.num_minibatches):
            observations, actions, old_log_probs, advantage, target = (part[chosen] for part in flat)
            policy, value = agent(observations)
            advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
            ratio = (policy.log_prob(actions) - old_log_probs).exp()
            gain = torch.minimum(advantage * ratio, advantage * ratio.clamp(1 - args.clip, 1 + args.clip))
            value_loss = 0.5 * (value - target).square().mean()
            loss = -gain.mean() + args.value_cost * value_loss - args.entropy_cost * policy.entropy().mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(agent.parameters(), args.max_grad_norm)
            optimizer.step()


def train(envs: FleetVectorEnv, args: Args) -> None:
    observation, action = envs.single_observation_space, envs.single_action_space
    if not isinstance(observation, Box) or len(observation.shape) != 1 or not isinstance(action, Discrete):
        raise SystemExit(f"one vector and one choice are expected, not {observation} and {action}")
    agent = Agent(observation.shape[0], int(action.n))
    optimizer = torch.optim.Adam(agent.parameters(), lr=args.learning_rate, eps=1e-5)
    collector = Collector(envs, agent, args.rollout_length)
    step, begin = 0, time.monotonic()
    while step < args.total_steps:
        optimizer.param_groups[0]["lr"] = args.learning_rate * (1 - step / args.total_steps)
        update(agent, optimizer, collector.collect(), args)
        step += args.rollout_length * args.num_envs
        mean = sum(collector.returns) / max(len(collector.returns), 1)
        speed = step / (time.monotonic() - begin)
        print(f"step {step}  {speed:.0f} steps/s  mean return {mean:.1f}  lost {collector.num_lost}", flush=True)
        if len(collector.returns) == collector.returns.maxlen and mean >= args.target_return:
            break


def main(args: Args) -> None:
    torch.manual_seed(args.seed)
    torch.set_num_threads(1)
    # By default, the signal does not end the first process of a container.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    envs = FleetVectorEnv(args.address, args.num_envs, token_file=args.token_file, http_address=args.http_address)
    with contextlib.closing(envs):
        train(envs, args)


if __name__ == "__main__":
    main(tyro.cli(Args))
