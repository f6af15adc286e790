"""Ids of EnvPool name the missing package if it is not installed; tests/integration/envpool_rows.py needs it."""

import sys

import pytest

from kubebeast_common.spec.env_config import Wrapper
from kubebeast_envserver import make_vector_env
from kubebeast_envserver.envs.factory import find_action_meanings, resolve_config


def test_an_id_of_envpool_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "envpool", None)

    with pytest.raises(ValueError, match=r"env = 'envpool/Pong-v5': .*pip install 'kubebeast\[envpool\]'"):
        make_vector_env("envpool/Pong-v5", 1)


def test_a_module_of_the_users_own_is_named_where_it_is_missing() -> None:
    with pytest.raises(ValueError, match=r"env = 'nowhere:envpool/Mine-v0': .*nowhere"):
        make_vector_env("nowhere:envpool/Mine-v0", 1)


def test_wrappers_are_refused() -> None:
    with pytest.raises(ValueError, match="vector/ and envpool/ stand for a whole vector"):
        make_vector_env("envpool/Pong-v5", 1, wrappers=[Wrapper("gymnasium.wrappers:FlattenObservation")])


def test_its_atari_games_have_no_preset_of_ours() -> None:
    assert resolve_config("envpool/Pong-v5").preset == "none"
    assert find_action_meanings("envpool/Pong-v5") is None
