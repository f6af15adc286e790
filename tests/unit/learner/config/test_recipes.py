"""Recipes are found by name, for Atari by environment id, and hold settings that exist."""

import pytest

from kubebeast_common.cli.settings import setting_types
from kubebeast_learner.config import ConfigError, MonoConfig, TrainConfig
from kubebeast_learner.config.recipes import RECIPES, choose_recipe, is_left_to_kind


@pytest.mark.parametrize(
    ("env_id", "name"),
    [
        ("PongNoFrameskip-v4", "atari"),
        ("ALE/Breakout-v5", "atari"),
        ("ale_py:ALE/Pong-v5", "atari"),
        ("ALE/Pong", "atari"),
        ("PongNoFrameskip", "atari"),
        ("PongNoFrameskip-v0", "atari"),
        ("Pong-v4", "atari"),
        ("envpool/Pong-v5", "atari"),
        ("MinAtar/Breakout-v1", None),
        ("CartPole-v1", None),
        ("Catch-v0", None),
        ("HalfCheetah-v5", None),
        ("", None),
    ],
)
def test_auto_knows_the_ids_of_atari_only(env_id: str, name: str | None) -> None:
    recipe = choose_recipe("auto", env_id)
    assert (recipe and recipe.name) == name
    assert is_left_to_kind("auto", env_id) == (name is None)


def test_a_named_recipe_is_taken_for_any_environment() -> None:
    recipe = choose_recipe("atari", "Acrobot-v1")
    assert recipe is not None and recipe.name == "atari" and not is_left_to_kind("atari", "Acrobot-v1")


@pytest.mark.parametrize("name", ["vector", "control", "grid"])
def test_a_recipe_for_a_kind_of_environment_is_chosen_by_its_name_only(name: str) -> None:
    recipe = choose_recipe(name, "Acrobot-v1")
    assert recipe is not None and recipe.name == name and recipe.settings["reward_clipping"] == "none"


def test_the_kind_decides_on_atari_only_if_that_is_chosen() -> None:
    assert choose_recipe("kind", "ALE/Pong-v5") is None and is_left_to_kind("kind", "ALE/Pong-v5")


def test_torchbeast_and_none_keep_the_defaults() -> None:
    recipe = choose_recipe("torchbeast", "CartPole-v1")
    assert recipe is not None and not recipe.settings and choose_recipe("none", "CartPole-v1") is None
    assert not is_left_to_kind("torchbeast", "CartPole-v1") and not is_left_to_kind("none", "CartPole-v1")


def test_unknown_name_is_refused_with_the_known_ones() -> None:
    with pytest.raises(
        ConfigError,
        match=r"recipe = 'chess'.*kind, none, torchbeast, vector, control, grid, frames, CartPole-v1",
    ):
        choose_recipe("chess", "CartPole-v1")


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.name)
def test_every_setting_of_a_recipe_exists(recipe: object) -> None:
    known = setting_types(TrainConfig).keys() | setting_types(MonoConfig).keys()
    assert recipe.settings.keys() <= known  # type: ignore[attr-defined]
