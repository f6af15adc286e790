"""IMPALA in one file: actors -> rollouts -> loss -> step -> weights -> actors. Learns Catch on one machine:

python examples/impala_loop.py

Espeholt et al. 2018, https://arxiv.org/abs/1802.01561. T transitions, B unrolls; arrays are time-major.
"""

import tempfile
import time
from collections import deque
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
import tyro
from torch import Tensor, nn

from kubebeast_learner import ActorProcessesConfig, ModelConfig, MonoActors, MonoConfig, RolloutConfig, RunConfig
from kubebeast_learner.algorithm import Rollout, vtrace
from kubebeast_learner.models import Model, make_model


@dataclass
class Args:
    env: str = "kubebeast_envserver.catch:Catch-v0"
    """Environment: a gymnasium id or module:Id."""
    seed: int = 1
    """Seed of the weights, the actions and the environments."""
    total_steps: int = 50_000
    """Env-steps to train for."""
    num_actors: int = 8
    """Environments in all processes together."""
    num_actor_processes: int = 2
    """Processes that step environments and act in them."""
    unroll_length: int = 10
    """Transitions in an unroll (T)."""
    batch_size: int = 8
    """Unrolls in a training batch (B)."""
    learning_rate: float = 0.003
    """Initial learning rate; it decays linearly to 0."""
    discounting: float = 0.99
    """Discount factor of the return, gamma."""
    baseline_cost: float = 0.5
    """Weight of the baseline loss."""
    entropy_cost: float = 0.01
    """Weight of the entropy bonus."""
    max_grad_norm: float = 40.0
    """Maximum norm of the gradient; larger gradients are scaled down to it."""
    updates_per_line: int = 100
    """Updates between two lines of output."""


def impala_loss(model: Model, rollout: Rollout, args: Args) -> Tensor:
    """Returns the sum of policy-gradient, baseline and entropy losses over the valid transitions [T, B]; a scalar."""
    output, _ = model(rollout.model_inputs, rollout.core_state)
    policy_logits, baseline = output.policy_logits[:-1], output.baseline[:-1]
    targets = vtrace.from_logits(
        behavior_policy_logits=rollout.policy_logits,
        target_policy_logits=policy_logits,
        actions=rollout.action,
        discounts=args.discounting * (~rollout.terminated[1:]).float(),
        rewards=rollout.rewards[1:],
        values=baseline,
        bootstrap_value=output.baseline[-1],
        valid=rollout.valid,  # False if the next row begins another episode
    )
    log_policy = F.log_softmax(policy_logits, dim=-1)
    action_log_probs = log_policy.gather(-1, rollout.action.unsqueeze(-1)).squeeze(-1)
    entropy = -(log_policy.exp() * log_policy).sum(dim=-1)

    pg_loss = -(action_log_probs * targets.pg_advantages)[rollout.valid].sum()
    baseline_loss = 0.5 * (targets.vs - baseline)[rollout.valid].square().sum()
    loss: Tensor = pg_loss + args.baseline_cost * baseline_loss - args.entropy_cost * entropy[rollout.valid].sum()
    return loss


def train(args: Args, actors: MonoActors) -> None:
    """Acts and learns for total_steps, and prints the progress."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    while (spec := actors.wait_env_spec(timeout_ms=1000)) is None:
        pass
    model = make_model(spec.observation, spec.action, ModelConfig()).to(device)
    optimizer = torch.optim.RMSprop(model.parameters(), lr=args.learning_rate, eps=0.01)
    actors.start(model, device, version=0)

    step = version = 0
    episode_returns: deque[float] = deque(maxlen=100)
    last_step, last_time = step, time.perf_counter()
    while step < args.total_steps:
        actors.check()  # restarts processes that died
        rollout = actors.next_rollout(timeout_ms=1000)
        if rollout is None:
            continue
        rollout = rollout.to(device)
        loss = impala_loss(model, rollout, args)

        optimizer.param_groups[0]["lr"] = args.learning_rate * (1 - step / args.total_steps)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(model.parameters(), args.max_grad_norm)
        optimizer.step()
        version += 1
        actors.publish(version)

        step += int(rollout.valid.sum())
        episode_returns += [episode.episode_return for episode in actors.take_episodes()]
        if version % args.updates_per_line == 0 or step >= args.total_steps:
            mean_return = sum(episode_returns) / max(1, len(episode_returns))
            speed = (step - last_step) / (time.perf_counter() - last_time)
            last_step, last_time = step, time.perf_counter()
            print(f"step {step:,}  {speed:,.0f} steps/s  mean return {mean_return:.2f}  loss {loss:.3f}", flush=True)


if __name__ == "__main__":  # the actor processes import this file too
    args = tyro.cli(Args)
    torch.manual_seed(args.seed)
    torch.set_num_threads(1)  # the matrices are small, and the actors need the other cores
    config = MonoConfig(
        run=RunConfig(seed=args.seed),
        rollout=RolloutConfig(unroll_length=args.unroll_length, batch_size=args.batch_size),
        actors=ActorProcessesConfig(
            env=args.env, num_actors=args.num_actors, num_actor_processes=args.num_actor_processes
        ),
    )
    with tempfile.TemporaryDirectory() as folder:
        actors = MonoActors(config, Path(folder))
        try:
            train(args, actors)
        finally:
            actors.stop()
