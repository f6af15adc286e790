"""Settings that are known to learn, by environment id: the defaults under `--recipe auto`.

A recipe sits between the built-in defaults and the user's own settings, which win.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from kubebeast_learner.config import ConfigError


@dataclass(frozen=True, kw_only=True, slots=True)
class Recipe:
    name: str
    env_pattern: str
    """Regular expression that the whole environment id matches."""
    settings: Mapping[str, object]
    """Setting name to value; settings a command does not have are skipped."""


RECIPES = (
    Recipe(
        name="CartPole-v1",
        env_pattern=r"CartPole-v[01]",
        # Mean return of 100 episodes over 475 after 136, 160 and 128 thousand steps with seeds 1, 2 and 3.
        settings={
            "model": "mlp",
            "hidden_sizes": (64, 64),
            "num_servers": 1,
            "num_actor_processes": 1,
            "num_actors": 8,
            "unroll_length": 20,
            "batch_size": 4,
            "total_steps": 200_000,
            "learning_rate": 0.003,
            "entropy_cost": 0.01,
            "baseline_cost": 0.5,
        },
    ),
    Recipe(
        name="Catch",
        env_pattern=r"(.+:)?Catch-v0",
        settings={
            "model": "mlp",
            "hidden_sizes": (64, 64),
            "num_servers": 2,
            "num_actor_processes": 2,
            "num_actors": 8,
            "unroll_length": 10,
            "batch_size": 8,
            "total_steps": 100_000,
            "learning_rate": 0.003,
            "entropy_cost": 0.01,
        },
    ),
    Recipe(
        name="Pendulum-v1",
        env_pattern=r"Pendulum-v1",
        # The horizon is short, and the speed is eight times as large as the other numbers of an observation.
        settings={
            "model": "mlp",
            "initialisation": "orthogonal",
            "normalise_observations": True,
            "num_servers": 1,
            "num_actor_processes": 1,
            "num_actors": 16,
            "unroll_length": 8,
            "batch_size": 16,
            "total_steps": 500_000,
            "optimizer": "adam",
            "learning_rate": 0.002,
            "epsilon": 1e-5,
            "discounting": 0.9,
            "vtrace_lambda": 0.9,
            "entropy_cost": 0.0,
            "reward_scale": 0.1,
            "reward_clipping": "none",
            "loss_reduction": "mean",
            "grad_norm_clipping": 0.5,
        },
    ),
    Recipe(
        name="mujoco",
        env_pattern=r"HalfCheetah-v[45]",
        # Every transition is trained on some ten times, within PPO's bounds (arXiv:1707.06347).
        settings={
            "model": "mlp",
            "initialisation": "orthogonal",
            "separate_baseline": True,
            "log_std_init": -0.5,
            "normalise_observations": True,
            "num_servers": 1,
            "num_actor_processes": 1,
            "num_actors": 16,
            "unroll_length": 16,
            "batch_size": 20,
            "replay_share": 0.9,
            "replay_capacity": 128,
            "total_steps": 3_000_000,
            "optimizer": "adam",
            "learning_rate": 0.001,
            "epsilon": 1e-5,
            "vtrace_lambda": 0.95,
            "entropy_cost": 0.0,
            "reward_scale": 0.1,
            "reward_clipping": "none",
            "normalise_advantages": True,
            "clip_policy_ratio": 0.2,
            "loss_reduction": "mean",
            "grad_norm_clipping": 0.5,
        },
    ),
    Recipe(
        name="atari",
        env_pattern=r"ALE/.+|.+NoFrameskip-v[04]",
        # Short unrolls and small batches give many updates a step (Mnih et al. 2016, arXiv:1602.01783).
        settings={
            "model": "shallow",
            "initialisation": "orthogonal",
            "num_servers": 3,
            "num_actors": 32,
            "unroll_length": 5,
            "batch_size": 16,
            "total_steps": 6_000_000,
            "optimizer": "rmsprop",
            "learning_rate": 0.0007,
            "epsilon": 1e-5,
            "entropy_cost": 0.01,
            "baseline_cost": 0.5,
            "loss_reduction": "mean",
            "grad_norm_clipping": 0.5,
        },
    ),
)


def choose_recipe(choice: str, env_id: str) -> Recipe | None:
    """The recipe named `choice`; for "auto" the one whose pattern matches `env_id`, if any; None for "none".

    ConfigError when there is no recipe of that name.
    """
    if choice == "none":
        return None
    if choice == "auto":
        return next((recipe for recipe in RECIPES if re.fullmatch(recipe.env_pattern, env_id)), None)
    for recipe in RECIPES:
        if recipe.name == choice:
            return recipe
    names = ", ".join(["auto", "none", *(recipe.name for recipe in RECIPES)])
    raise ConfigError(f"recipe = {choice!r}: there is no such recipe; choose one of {names}")
