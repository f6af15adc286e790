"""A gymnasium.vector.VectorEnv becomes rows."""

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv
from gymnasium.vector.utils import batch_space

from kubebeast_common.spec.env_config import Wrapper
from kubebeast_envserver.envs.factory import EnvironmentFailure, make_vector_env
from kubebeast_envserver.envs.vector_env import VectorEnvRows
from kubebeast_envserver.rows.rows import StepRows
from tests.integration import any_space, masked_game

CATCH = "kubebeast_envserver.catch:vector/Catch-v0"
B = 3


class Endless(VectorEnv[Any, Any, Any]):
    """Has no argument max_episode_steps."""

    metadata = {"autoreset_mode": AutoresetMode.NEXT_STEP}  # noqa: RUF012

    def __init__(self, num_envs: int) -> None:
        self.num_envs = num_envs
        self.single_observation_space = gymnasium.spaces.Box(0.0, 1.0, (2,), np.float32)
        self.single_action_space = gymnasium.spaces.Discrete(2)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)

    def reset(self, **_: Any) -> tuple[Any, dict[str, Any]]:
        return np.zeros((self.num_envs, 2), np.float32), {}

    def step(self, actions: Any) -> tuple[Any, ...]:
        never = np.zeros(self.num_envs, np.bool_)
        return np.ones((self.num_envs, 2), np.float32), np.ones(self.num_envs), never, never, {}


gymnasium.register("Endless-v0", vector_entry_point=f"{__name__}:Endless")


def catch(mode: AutoresetMode = AutoresetMode.NEXT_STEP) -> Any:
    return gymnasium.make_vec("kubebeast_envserver.catch:Catch-v0", B, vector_kwargs={"autoreset_mode": mode})


def test_a_vector_yields_the_rows_of_single_environments() -> None:
    single = make_vector_env(CATCH.replace("vector/", ""), B, seed=5)
    vector = make_vector_env(CATCH, B, seed=5)
    pairs = [(single.reset(), vector.reset())]
    for step in range(25):
        actions = [np.full(B, step % 3)]
        pairs.append((single.step(actions), vector.step(actions)))
    for ours, theirs in pairs:
        assert np.array_equal(ours.observation[0], theirs.observation[0])
        for name in ("rewards", "terminated", "truncated", "is_first"):
            assert np.array_equal(getattr(ours, name), getattr(theirs, name)), name
        assert ours.episodes == theirs.episodes
    assert any(rows.episodes for _, rows in pairs)


def test_a_registered_vector_entry_point_plays() -> None:
    env = make_vector_env("vector/CartPole-v1", B, seed=1, time_limit=5)
    assert env.reset().is_first.all()
    ends = [env.step([np.arange(B) % 2]).truncated.all() for _ in range(6)]
    assert ends == [False, False, False, False, True, False]


@pytest.mark.parametrize("mode", [AutoresetMode.SAME_STEP, AutoresetMode.DISABLED])
def test_another_autoreset_mode_is_refused_by_name(mode: AutoresetMode) -> None:
    with pytest.raises(ValueError, match=rf"autoreset_mode'\] is {mode}: make it with AutoresetMode.NEXT_STEP"):
        VectorEnvRows(catch(mode), seed=1)


@pytest.mark.parametrize(
    ("position", "value", "message"),
    [
        (0, np.full((B, 10, 5), np.nan, np.float32), "no finite float32"),
        (0, np.zeros((B, 9, 5), np.float32), "has the shape"),
        (1, np.full(B, np.inf), "must be finite"),
        (1, np.zeros(B + 1), "rewards of float64"),
        (2, np.zeros(B), "terminations of float64"),
        (3, None, "truncations of object"),
    ],
)
def test_what_a_vector_must_not_return_fails_it_as_a_whole(
    monkeypatch: pytest.MonkeyPatch, position: int, value: Any, message: str
) -> None:
    def step(self: SyncVectorEnv, actions: Any) -> tuple[Any, ...]:
        result = [np.zeros((B, 10, 5), np.float32), np.zeros(B), np.zeros(B, np.bool_), np.zeros(B, np.bool_), {}]
        result[position] = value
        return tuple(result)

    env = make_vector_env(CATCH, B)
    env.reset()
    monkeypatch.setattr(SyncVectorEnv, "step", step)
    with pytest.raises(EnvironmentFailure, match=message):
        env.step([np.zeros(B, np.int64)])


def test_wrappers_and_unknown_ids_are_refused() -> None:
    with pytest.raises(ValueError, match="vector/ and envpool/ stand for a whole vector"):
        make_vector_env(CATCH, B, wrappers=[Wrapper("gymnasium.wrappers:FlattenObservation")])
    with pytest.raises(ValueError, match="Nowhere"):
        make_vector_env("vector/Nowhere-v0", B)


def random_play(env_id: str, num_steps: int, **kwargs: Any) -> list[StepRows]:
    """Plays arbitrary actions; legal ones if there is a mask."""
    env = make_vector_env(env_id, B, seed=1, env_kwargs=kwargs)
    rows = [env.reset()]
    for _ in range(num_steps):
        masks = [
            mask for mask, leaf in zip(rows[-1].observation, env.spec_observation, strict=True) if leaf.is_action_mask
        ]
        actions = [mask.argmax(axis=1) for mask in masks]
        rows.append(env.step(actions or [np.zeros((B, *leaf.shape), leaf.dtype) for leaf in env.spec_action]))
        assert [leaf.shape for leaf in rows[-1].observation] == [(B, *leaf.row_shape) for leaf in env.spec_observation]
    env.close()
    return rows


@pytest.mark.parametrize("mode", ["sync", "async"])
@pytest.mark.parametrize("action", ["discrete", "multi-discrete", "bounded box", "dict", "tuple"])
def test_composed_spaces_travel_both_ways(action: str, mode: str) -> None:
    kwargs = {"observation": "tuple", "action": action, "vectorization_mode": mode}  # it raises if an action is invalid
    rows = random_play(f"{any_space.__name__}:vector/AnySpace-v0", 2 * any_space.LENGTH, **kwargs)
    assert sum(len(each.episodes) for each in rows) == B


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_a_mask_of_actions_is_that_of_each_environment(mode: str) -> None:
    game = f"{masked_game.__name__}:vector/Masked-v0"  # it raises if an action is illegal
    rows = random_play(game, 3 * masked_game.LENGTH, vectorization_mode=mode)
    games = [game for each in rows for game in each.episodes]
    assert [episode_return for _, episode_return, _ in games] == [masked_game.LENGTH] * 2 * B
    assert rows[masked_game.LENGTH].observation[0].all(), "after the last step no action is legal, and none is taken"


def test_a_vector_without_a_limit_plays_on_and_cannot_be_given_one() -> None:
    assert not any(rows.truncated.any() for rows in random_play(f"{__name__}:vector/Endless-v0", 10))
    with pytest.raises(EnvironmentFailure, match=r"could not be made: TypeError: .*'max_episode_steps'"):
        make_vector_env(f"{__name__}:vector/Endless-v0", B, time_limit=5)
