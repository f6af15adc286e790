"""A gymnasium.vector.VectorEnv as rows."""

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from kubebeast_common.env_config import Wrapper
from kubebeast_envserver.envs.factory import EnvironmentFailure, make_vector_env
from kubebeast_envserver.envs.vector_env import VectorEnvRows

CATCH = "kubebeast_envserver.catch:vector/Catch-v0"
B = 3


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
    with pytest.raises(ValueError, match="vector/ is a whole vector"):
        make_vector_env(CATCH, B, wrappers=[Wrapper("gymnasium.wrappers:FlattenObservation")])
    with pytest.raises(ValueError, match="Nowhere"):
        make_vector_env("vector/Nowhere-v0", B)
