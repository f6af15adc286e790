"""Settings that are known to learn: for Atari, for a kind of environment, or for one environment if named.

A recipe overrides the built-in defaults; the user's own settings override a recipe.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from kubebeast_common.ids.env_id import parse_env_id
from kubebeast_learner.config.checks import ConfigError

AUTO = "auto"
"""Choice of the recipe for Atari by the environment id, and for others by their kind."""
NONE = "none"
"""Choice of no recipe; an older name of TORCHBEAST."""
TORCHBEAST = "torchbeast"
KIND = "kind"
"""Choice of the recipe for the kind of the environment, once the training has met it."""


class RecipeChoice(NamedTuple):
    """The recipe of a training, and what the environment still has to decide."""

    name: str = ""
    """Name of the recipe; empty if there is none, or none yet."""
    named: frozenset[str] | None = None
    """If the kind of the environment decides on the recipe, the settings that other sources name; else None."""
    note: str = ""
    """Line for the log of the run: what the environment has decided, and why; empty if nothing."""

    def __str__(self) -> str:
        """The value of --recipe."""
        return KIND if self.is_open else self.name or "none"

    @property
    def is_open(self) -> bool:
        return self.named is not None


NO_RECIPE = RecipeChoice()


@dataclass(frozen=True, kw_only=True, slots=True)
class Recipe:
    name: str
    settings: Mapping[str, object]
    """Setting name to value; settings that a command does not have are skipped."""


_IN_ONE_PROCESS: Mapping[str, object] = {"num_servers": 1, "num_actor_processes": 1}
"""For environments whose steps are cheap."""

_WITHIN_A_BOUND: Mapping[str, object] = {
    # Every transition is trained on several times, within PPO's bound (arXiv:1707.06347).
    "initialisation": "orthogonal",
    "normalise_off_scale": True,
    "optimizer": "adam",
    "learning_rate": 0.001,
    "epsilon": 1e-5,
    "vtrace_lambda": 0.95,
    "reward_clipping": "none",
    "normalise_advantages": True,
    "clip_policy_ratio": 0.2,
    "loss_reduction": "mean",
    "grad_norm_clipping": 0.5,
}

_PASSES: Mapping[str, object] = {
    **_WITHIN_A_BOUND,
    "num_actors": 16,
    "unroll_length": 128,
    "batch_size": 16,
    "passes": 10,
    "minibatches": 8,
}

_FRAMES: Mapping[str, object] = {
    # Three passes, as each costs a network with convolutions much; what moves stands out (docs/design/recipes.md).
    **_PASSES,
    # The environments wait during updates: after 24 gradient steps, data of the weights before are of little use.
    "wait_for_updates": True,
    "learning_rate": 0.0003,
    "passes": 3,
    "normalise_images": True,
    "normalise_values": True,
    "entropy_cost": 0.01,
    "entropy_schedule": "linear",
}

RECIPES = (
    Recipe(name=TORCHBEAST, settings={}),  # the defaults of the settings are TorchBeast's
    Recipe(
        name="vector",
        # Observations on scale stay as they are: with normalized ones, Acrobot is not learned (docs/design/recipes.md).
        settings={
            **_IN_ONE_PROCESS,
            **_PASSES,
            "model": "auto",  # the mlp, unless a leaf is an image
            "separate_baseline": True,
            "normalise_values": True,
            "entropy_cost": 0.01,
        },
    ),
    Recipe(
        name="control",
        settings={
            **_IN_ONE_PROCESS,
            **_PASSES,
            "model": "auto",  # the mlp, unless a leaf is an image
            "separate_baseline": True,
            "log_std_init": -0.5,
            "normalise_observations": True,
            "entropy_cost": 0.0,
        },
    ),
    Recipe(
        name="grid",
        # Small changes of the policy after few steps, in place of large ones after many (docs/design/recipes.md).
        settings={
            **_IN_ONE_PROCESS,
            **_WITHIN_A_BOUND,
            "normalise_values": True,
            "num_actors": 32,
            "unroll_length": 16,
            "batch_size": 10,
            "replay_share": 0.9,
            "replay_capacity": 128,
            "entropy_cost": 0.01,
        },
    ),
    Recipe(name="frames", settings=_FRAMES),
    Recipe(
        name="CartPole-v1",
        # Mean return of 100 episodes over 475 after 136, 160 and 128 thousand steps with seeds 1, 2 and 3. In a longer
        # run the learning rate stays high for longer, and the return oscillates until it has decayed.
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
        # Every transition is trained on about ten times, within PPO's bounds (arXiv:1707.06347).
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
        settings={
            **_FRAMES,
            "model": "shallow",
            "num_servers": 3,
            "total_steps": 1_500_000,
            "reward_clipping": "abs_one",
        },
    ),
)

BY_KIND = ("vector", "control", "grid", "frames")
"""Recipes for kinds of environments."""
OPEN_SETTINGS = frozenset(name for each in RECIPES if each.name in BY_KIND for name in each.settings)
"""Settings that the kind of an environment may decide."""


def settings_beside(recipe: Recipe, model: str, loss: str) -> dict[str, object]:
    """Returns the settings of a recipe that fit a model and a loss: only built-in ones have normalized values."""
    is_own = ":" in model or ":" in loss
    return {name: value for name, value in recipe.settings.items() if not (is_own and name == "normalise_values")}


def recipe_named(name: str) -> Recipe:
    """Returns a recipe. Raises ConfigError if there is no recipe of that name."""
    for recipe in RECIPES:
        if recipe.name == name:
            return recipe
    names = ", ".join([AUTO, KIND, NONE, *(recipe.name for recipe in RECIPES)])
    raise ConfigError(f"recipe = {name!r}: there is no such recipe; choose one of {names}")


def choose_recipe(choice: str, env_id: str) -> Recipe | None:
    """Returns the recipe named `choice`; for "auto" that of Atari if `env_id` is one of its games.

    None: the kind of the environment decides, or there is none (NONE). Raises ConfigError if there is no recipe of that
    name.
    """
    if choice == AUTO:
        return None if parse_env_id(env_id).atari_game is None else recipe_named("atari")
    return None if choice in (KIND, NONE) else recipe_named(choice)


def is_left_to_kind(choice: str, env_id: str) -> bool:
    """Returns True if the kind of the environment decides on the recipe."""
    return choice == KIND or (choice == AUTO and choose_recipe(choice, env_id) is None)
