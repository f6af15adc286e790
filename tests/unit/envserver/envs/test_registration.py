"""Ids that packages register in their own ways."""

import sys
from collections.abc import Iterator
from pathlib import Path

import gymnasium
import pytest

from kubebeast_envserver import make_vector_env
from kubebeast_envserver.rows.rows import HostedEnv

GAME = """
import gymnasium
import numpy as np
class Game(gymnasium.Env):
    def __init__(self, num_levels=0, render_mode=None):
        self.observation_space = gymnasium.spaces.Box(0, 255, (64, 64, 3), np.uint8)
        self.action_space = gymnasium.spaces.Discrete(15)
    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.observation_space.sample(), {}
    def step(self, action):
        return self.observation_space.sample(), 1.0, False, False, {}
"""
AT_IMPORT = (
    GAME
    + """
for name in ("coinrun", "heist"):
    gymnasium.register(f"procgen-like-{name}-v0", entry_point=Game)
"""
)
IN_AN_ENTRY_POINT = (
    GAME
    + """
def register_envs():
    gymnasium.register("Plugged/Game-v1", entry_point=Game)
"""
)


@pytest.fixture(autouse=True)
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    (tmp_path / "registers_at_import.py").write_text(AT_IMPORT)
    (tmp_path / "plugged.py").write_text(IN_AN_ENTRY_POINT)
    metadata = tmp_path / "plugged-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Name: plugged\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[gymnasium.envs]\nPlugged = plugged:register_envs\n")
    monkeypatch.syspath_prepend(tmp_path)
    known = dict(gymnasium.registry)
    yield
    gymnasium.registry.clear()
    gymnasium.registry.update(known)
    for name in ("registers_at_import", "plugged"):
        sys.modules.pop(name, None)


def shape_of(env: HostedEnv) -> tuple[int, ...]:
    (observation,) = env.reset().observation
    env.close()
    return observation.shape


def test_a_module_registers_many_games_when_it_is_imported() -> None:
    kwargs = {"num_levels": 200}
    assert shape_of(make_vector_env("registers_at_import:procgen-like-heist-v0", 2, env_kwargs=kwargs)) == (
        2,
        64,
        64,
        3,
    )


@pytest.mark.parametrize("env_id", ["Plugged/Game-v1", "vector/Plugged/Game-v1"])
def test_a_package_registers_its_namespace_in_an_entry_point(env_id: str) -> None:
    assert shape_of(make_vector_env(env_id, 2)) == (2, 64, 64, 3)
    assert shape_of(make_vector_env(env_id, 1)) == (1, 64, 64, 3), "once is enough"


def test_a_namespace_of_no_package_is_named() -> None:
    with pytest.raises(ValueError, match="env = 'Nobody/Game-v1': Namespace Nobody not found"):
        make_vector_env("Nobody/Game-v1", 1)
