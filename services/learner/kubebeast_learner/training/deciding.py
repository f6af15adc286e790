"""The recipe for a kind of environment, which a training decides on once it has met its environment."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar

from kubebeast_common.cli.settings import setting_types, with_settings
from kubebeast_common.spec.env_spec import EnvSpec
from kubebeast_learner.config import LearnerConfig, ModelConfig, TrainingConfig
from kubebeast_learner.config.recipes import OPEN_SETTINGS, Recipe, RecipeChoice, recipe_named, settings_beside
from kubebeast_learner.models.scales.observation import is_number
from kubebeast_learner.models.torsos.choice import find_images
from kubebeast_learner.models.torsos.shallow import ShallowTorso

ConfigT = TypeVar("ConfigT", bound=TrainingConfig)


def recipe_for(spec: EnvSpec, model: ModelConfig) -> tuple[Recipe, str]:
    """Returns the recipe for the kind of an environment, and the reason."""
    leaves = [leaf for leaf in spec.observation if not leaf.is_action_mask]
    images = find_images(leaves, model)
    largest = max((min(image.height, image.width) for image in images.values()), default=0)
    if largest >= ShallowTorso.smallest_side:
        return recipe_named("frames"), "the observation has frames"
    if any(leaf.num_categories == 0 for leaf in spec.action):
        return recipe_named("control"), "the actions are numbers"
    if images:
        return recipe_named("grid"), "the observation is a small image and the actions are categories"
    return recipe_named("vector"), "the observation has no image and the actions are categories"


def decide(config: ConfigT, spec: EnvSpec) -> ConfigT:
    """Returns the configuration with the recipe for the kind of the environment; itself if nothing is left to decide.

    Raises ConfigError if other settings do not fit the recipe.
    """
    if not config.recipe.is_open:
        return config
    recipe, reason = recipe_for(spec, config.model)
    settings = _open_settings(config, _fitting(recipe, config, spec))
    listed = ", ".join(f"{name}={value}" for name, value in settings.items())
    note = f"settings of recipe {recipe.name}, as {reason}: {listed}"
    return replace(with_settings(config, settings), recipe=RecipeChoice(recipe.name, note=note))


def keep_decided(config: ConfigT, saved: Mapping[str, Any], spec: EnvSpec) -> ConfigT:
    """Returns the configuration with what was decided for the run to resume.

    Args:
        saved: Settings of its checkpoint.
        spec: Its environment.
    """
    if not config.recipe.is_open:
        return config
    decided = {name: saved[name] for name in sorted(OPEN_SETTINGS & saved.keys())}
    config = with_settings(config, _open_settings(config, decided))
    return replace(config, recipe=RecipeChoice(recipe_for(spec, config.model)[0].name))


def undecided(config: TrainingConfig) -> frozenset[str]:
    """Returns the settings that the kind of the environment is still to decide."""
    return frozenset() if config.recipe.named is None else OPEN_SETTINGS - config.recipe.named


def _open_settings(config: TrainingConfig, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the settings that the configuration has and no other source names."""
    types, free = setting_types(type(config)), undecided(config)
    return {name: value for name, value in settings.items() if name in types and name in free}


def _fitting(recipe: Recipe, config: TrainingConfig, spec: EnvSpec) -> dict[str, object]:
    """Returns the settings of a recipe that fit the environment, and the settings that other sources name."""
    model, leaves = config.model, [leaf for leaf in spec.observation if not leaf.is_action_mask]
    images = find_images(leaves, model)
    unfit = set()
    if not any(is_number(leaf) and index not in images for index, leaf in enumerate(leaves)):
        unfit.add("normalise_observations")
    if isinstance(config, LearnerConfig) and config.fleet.from_recording is not None:  # it has the replayed unrolls
        unfit |= {"replay_share", "replay_capacity"}
    settings = settings_beside(recipe, model.model, config.loss.loss)
    return {name: value for name, value in settings.items() if name not in unfit}
