"""Ids of older gym name the missing package if it is not installed; tests/integration/test_older_gym.py needs it."""

import sys

import pytest
from gymnasium import spaces

from kubebeast_envserver import make_vector_env
from kubebeast_envserver.envs.atari import settings_for
from kubebeast_envserver.envs.libraries.older_gym import restore_starts


def test_an_id_of_gym_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gym", None)

    with pytest.raises(ValueError, match=r"env = 'gym/CartPole-v1': .*kubebeast-envserver\[legacy\]"):
        make_vector_env("gym/CartPole-v1", 1)


def test_atari_py_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "atari_py", None)

    with pytest.raises(ValueError, match=r"env_kwargs: .*kubebeast-envserver\[legacy-atari\]"):
        make_vector_env("PongNoFrameskip-v4", 1, env_kwargs={"emulator": "atari_py"})


def test_an_emulator_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match="emulator = 'stella': must be one of ale_py, atari_py"):
        settings_for("atari-v4", {"emulator": "stella"}, evaluation=False)


def test_categories_begin_where_they_do_in_gym() -> None:
    original = spaces.Dict({"a": spaces.Discrete(3, start=1), "b": spaces.Tuple([spaces.Discrete(2, start=-4)])})
    copied = spaces.Dict({"a": spaces.Discrete(3), "b": spaces.Tuple([spaces.Discrete(2)])})

    restore_starts(copied, original)

    assert copied == original
