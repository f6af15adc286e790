"""The kind of an environment decides on the settings that no other source names."""

import contextlib
from pathlib import Path
from uuid import uuid4

import gymnasium
import pytest

from kubebeast_common.cli.settings import as_settings
from kubebeast_common.spec.env_spec import EnvSpec
from kubebeast_common.spec.leaves import Leaf
from kubebeast_envserver.envs.factory import make_vector_env
from kubebeast_learner.config import LearnerConfig, LossConfig, ModelConfig, MonoConfig, RemoteFleetConfig, ReplayConfig
from kubebeast_learner.config.recipes import AUTO, OPEN_SETTINGS, RecipeChoice, is_left_to_kind, recipe_named
from kubebeast_learner.models import ModelSpecError, make_model
from kubebeast_learner.training.deciding import decide, keep_decided, recipe_for, undecided

NUMBERS, CELLS, SCREEN = Leaf("", "float32", (4,)), Leaf("", "bool", (10, 10, 4)), Leaf("", "uint8", (84, 84), 4)
PLACE, MASK = Leaf("", "int64", (), num_categories=500), Leaf("mask", "bool", (3,), is_action_mask=True)
CHOICE, FORCE = Leaf("", "int64", (), num_categories=3), Leaf("", "float32", (2,), bounded=True)
KIND = RecipeChoice(named=frozenset())


def spec(*observation: Leaf, action: Leaf = CHOICE) -> EnvSpec:
    return EnvSpec("Any-v0", observation, (action,))


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        (spec(NUMBERS), "vector"),
        (spec(PLACE), "vector"),
        (spec(NUMBERS, MASK), "vector"),
        (spec(CELLS), "grid"),
        (spec(CELLS, NUMBERS), "grid"),
        (spec(SCREEN), "frames"),
        (spec(SCREEN, action=FORCE), "frames"),
        (spec(NUMBERS, action=FORCE), "control"),
        (spec(PLACE, action=FORCE), "control"),
    ],
)
def test_spaces_alone_determine_the_recipe(env: EnvSpec, expected: str) -> None:
    assert recipe_for(env, ModelConfig())[0].name == expected


IDS = (
    *("CartPole-v1", "Acrobot-v1", "Pendulum-v1", "MountainCarContinuous-v0", "Taxi-v4", "FrozenLake-v1"),
    *("Blackjack-v1", "CliffWalking-v1", "kubebeast_envserver.catch:Catch-v0"),
)


def under_another_name(env_id: str) -> str:
    """Registers an environment, which is known already, under a random id."""
    known = gymnasium.spec(env_id.rpartition(":")[2])
    name = f"E{uuid4().hex}-v0"
    gymnasium.register(name, known.entry_point, max_episode_steps=known.max_episode_steps, kwargs=known.kwargs)
    return name


def decided(env_id: str) -> tuple[dict[str, object], str]:
    """Returns the settings and the model of a training by default."""
    assert is_left_to_kind(AUTO, env_id)
    with contextlib.closing(make_vector_env(env_id, 1, seed=1)) as env:
        config = decide(MonoConfig(recipe=KIND), EnvSpec(env_id, tuple(env.spec_observation), tuple(env.spec_action)))
        return as_settings(config), str(make_model(env.spec_observation, env.spec_action, config.model))


@pytest.mark.parametrize("env_id", IDS)
def test_the_name_of_an_environment_decides_on_nothing(env_id: str) -> None:
    settings = decided(env_id)

    assert decided(under_another_name(env_id)) == settings


def test_an_image_that_a_setting_flattens_is_none() -> None:
    assert recipe_for(spec(CELLS), ModelConfig(model="mlp"))[0].name == "vector"
    assert recipe_for(spec(CELLS), ModelConfig(image_layout=(".=flat",)))[0].name == "vector"


SMALL, BOARD = Leaf("camera", "uint8", (16, 16, 3)), Leaf("", "uint8", (10, 10))
FLAGS = Leaf("", "bool", (5,))


@pytest.mark.parametrize("action", [CHOICE, FORCE])
@pytest.mark.parametrize(
    "observation",
    [
        *((NUMBERS,), (PLACE,), (FLAGS,), (CELLS,), (BOARD,), (SMALL,), (SMALL, Leaf("table", "float32", (3, 3)))),
        *((Leaf("", "uint8", (2, 50, 2)),), (Leaf("", "uint8", (2, 2, 2)),), (Leaf("", "uint8", (9,)),), (SCREEN,)),
    ],
)
@pytest.mark.parametrize("model", ["auto", "mlp"])
def test_what_a_recipe_decides_makes_a_model(observation: tuple[Leaf, ...], action: Leaf, model: str) -> None:
    env = spec(*observation, action=action)
    named = frozenset({"model"} if model == "mlp" else ())
    decided = decide(MonoConfig(model=ModelConfig(model=model), recipe=RecipeChoice(named=named)), env)

    make_model(env.observation, env.action, decided.model)


@pytest.mark.parametrize(("action", "recipe"), [(CHOICE, "vector"), (FORCE, "control")])
def test_an_image_layout_that_is_named_fits_every_recipe(action: Leaf, recipe: str) -> None:
    flat = MonoConfig(model=ModelConfig(image_layout=(".=flat",)), recipe=KIND)
    env = spec(BOARD, action=action)
    decided = decide(flat, env)

    assert (decided.recipe.name, decided.model.model) == (recipe, "auto")
    make_model(env.observation, env.action, decided.model)


@pytest.mark.parametrize("action", [CHOICE, FORCE])
def test_a_leaf_that_may_be_an_image_is_refused_with_the_setting_that_decides(action: Leaf) -> None:
    env = spec(Leaf("", "uint8", (7, 5, 6)), action=action)
    decided = decide(MonoConfig(recipe=KIND), env)

    with pytest.raises(ModelSpecError, match=r"may be an image.*--image-layout \.=hwc"):
        make_model(env.observation, env.action, decided.model)


def test_values_are_not_normalized_beside_a_model_or_a_loss_of_ones_own() -> None:
    assert decide(MonoConfig(recipe=KIND), spec(NUMBERS)).model.normalise_values
    own_model, own_loss = ModelConfig(model="nets:Net"), LossConfig(loss="losses:loss")
    assert not decide(MonoConfig(model=own_model, recipe=KIND), spec(NUMBERS)).model.normalise_values
    assert not decide(MonoConfig(loss=own_loss, recipe=KIND), spec(CELLS)).model.normalise_values


def test_nothing_is_replayed_beside_a_recording(tmp_path: Path) -> None:
    assert decide(LearnerConfig(recipe=KIND), spec(CELLS)).replay.replay_share == 0.9
    fleet = RemoteFleetConfig(from_recording=tmp_path)
    assert decide(LearnerConfig(fleet=fleet, recipe=KIND), spec(CELLS)).replay.replay_share == 0


def test_settings_that_a_source_names_stay() -> None:
    config = MonoConfig(
        replay=ReplayConfig(replay_share=0.5), recipe=RecipeChoice(named=frozenset({"replay_share", "unroll_length"}))
    )

    decided = decide(config, spec(NUMBERS))

    wanted = {name: value for name, value in recipe_named("vector").settings.items() if name in as_settings(config)}
    usual = as_settings(config)
    expected = usual | wanted | {name: usual[name] for name in ("replay_share", "unroll_length")}
    assert as_settings(decided) == expected
    assert decided.recipe.name == "vector" and decide(decided, spec(CELLS)) is decided
    line = decided.recipe.note
    assert line.startswith("settings of recipe vector, as the observation has no image") and "unroll_length" not in line


def test_without_the_choice_nothing_is_decided() -> None:
    config = MonoConfig()

    assert decide(config, spec(NUMBERS)) is config and keep_decided(config, {"batch_size": 3}, spec(NUMBERS)) is config
    assert undecided(config) == frozenset() and undecided(MonoConfig(recipe=KIND)) == OPEN_SETTINGS


def test_a_resumed_run_keeps_what_was_decided() -> None:
    saved = as_settings(MonoConfig()) | {"batch_size": 3, "model": "mlp", "total_steps": 7}
    config = MonoConfig(recipe=RecipeChoice(named=frozenset({"batch_size"})))

    resumed = keep_decided(config, saved, spec(NUMBERS))

    assert (resumed.rollout.batch_size, resumed.model.model) == (8, "mlp")
    assert resumed.run.total_steps == config.run.total_steps  # no recipe for a kind has it
    assert resumed.recipe == RecipeChoice("vector")
