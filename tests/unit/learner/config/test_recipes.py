"""Recipes are found by environment id and hold settings that exist."""

import pytest

from kubebeast_common.cli.settings import setting_types
from kubebeast_learner.config import ConfigError, MonoConfig, TrainConfig
from kubebeast_learner.config.recipes import RECIPES, choose_recipe


@pytest.mark.parametrize(
    ("env_id", "name"),
    [
        ("CartPole-v1", "CartPole-v1"),
        ("PongNoFrameskip-v4", "atari"),
        ("ALE/Breakout-v5", "atari"),
        ("kubebeast_envserver.catch:Catch-v0", "Catch"),
        ("Catch-v0", "Catch"),
        ("Catch", "Catch"),
        ("gymnasium:CartPole-v1", "CartPole-v1"),
        ("CartPole", "CartPole-v1"),
        ("vector/CartPole-v1", "CartPole-v1"),
        ("my_envs:gym/CartPole-v1", "CartPole-v1"),
        ("HalfCheetah", "mujoco"),
        ("gymnasium.envs.mujoco:HalfCheetah-v5", "mujoco"),
        ("ale_py:ALE/Pong-v5", "atari"),
        ("ALE/Pong", "atari"),
        ("PongNoFrameskip", "atari"),
        ("PongNoFrameskip-v0", "atari"),
        ("Pong-v4", "atari"),
        ("envpool/Pong-v5", "atari"),
        ("MinAtar/Breakout-v1", None),
        ("Blackjack-v1", None),
        ("MyCartPole-v1", None),
        ("Acrobot-v1", None),
    ],
)
def test_auto_goes_by_what_the_environment_id_names(env_id: str, name: str | None) -> None:
    recipe = choose_recipe("auto", env_id)
    assert (recipe and recipe.name) == name


def test_a_named_recipe_is_taken_for_any_environment() -> None:
    recipe = choose_recipe("atari", "Acrobot-v1")
    assert recipe is not None and recipe.name == "atari"


@pytest.mark.parametrize("name", ["vector", "control", "grid"])
def test_a_recipe_for_a_kind_of_environment_is_chosen_by_its_name_only(name: str) -> None:
    recipe = choose_recipe(name, "Acrobot-v1")
    assert recipe is not None and recipe.name == name and recipe.settings["reward_clipping"] == "none"
    assert choose_recipe("auto", name) is None and choose_recipe("auto", "") is None


def test_none_is_no_recipe() -> None:
    assert choose_recipe("none", "CartPole-v1") is None


def test_unknown_name_is_refused_with_the_known_ones() -> None:
    with pytest.raises(
        ConfigError,
        match=r"recipe = 'chess'.*kind, none, vector, control, grid, frames, CartPole-v1, Catch, Pendulum-v1, mujoco",
    ):
        choose_recipe("chess", "CartPole-v1")


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.name)
def test_every_setting_of_a_recipe_exists(recipe: object) -> None:
    known = setting_types(TrainConfig).keys() | setting_types(MonoConfig).keys()
    assert recipe.settings.keys() <= known  # type: ignore[attr-defined]
