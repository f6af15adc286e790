"""Ids that packages register in their own ways are found, and errors name the remedy."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import gymnasium
import pytest

from kubebeast_envserver import catch, envs, make_vector_env
from kubebeast_envserver.envs.registration import name_one_environment
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
    (tmp_path / "rooted.py").write_text(
        AT_IMPORT.replace("procgen-like-", "Rooted-") + "def register(): raise SystemExit\n"
    )
    (tmp_path / "broken.py").write_text("class Game: pass\n")
    metadata = tmp_path / "plugged-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Name: plugged\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(
        "[gymnasium.envs]\nPlugged = plugged:register_envs\n__root__ = rooted:register\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    known = dict(gymnasium.registry)
    assert catch.__name__ in sys.modules, "what it registers at its first import is known after the tests, too"
    yield
    gymnasium.registry.clear()
    gymnasium.registry.update(known)
    for name in ("registers_at_import", "plugged", "rooted", "broken"):
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


@pytest.mark.parametrize("env_id", ["Rooted-coinrun-v0", "Rooted-heist", "vector/Rooted-heist-v0"])
def test_ids_without_a_namespace_are_found_in_an_entry_point(env_id: str) -> None:
    assert shape_of(make_vector_env(env_id, 2)) == (2, 64, 64, 3)


@pytest.mark.parametrize("env_id", ["Catch-v0", "Catch", "kubebeast_envserver.catch:Catch", "vector/Catch-v0"])
def test_an_environment_of_ours_needs_no_module(env_id: str) -> None:
    assert shape_of(make_vector_env(env_id, 2)) == (2, 10, 5)


@pytest.mark.parametrize("env_id", ["CartPole", "gymnasium:CartPole", "vector/CartPole"])
def test_an_id_without_a_version_is_the_newest(env_id: str) -> None:
    assert shape_of(make_vector_env(env_id, 2)) == (2, 4)
    assert name_one_environment(env_id.replace("vector/", ""), "CartPole-v1")


def test_ids_of_several_modules_name_several_environments() -> None:
    assert not name_one_environment("a:Maze-v0", "b:Maze-v0")
    assert not name_one_environment("CartPole-v0", "CartPole-v1")
    assert not name_one_environment("vector/CartPole-v1", "CartPole-v1")
    assert name_one_environment("a:Maze-v0", "Maze-v0")


@pytest.mark.parametrize(
    ("env_id", "package", "requirement"),
    [
        ("MinAtar/Breakout-v1", "minatar", "kubebeast[minatar]"),
        ("vector/MinAtar/Breakout-v1", "minatar", "kubebeast[minatar]"),
        ("HalfCheetah-v5", "mujoco", "kubebeast[mujoco]"),
        ("dm_control/cartpole-swingup-v0", "dm_control", "kubebeast[dm-control]"),
        ("MiniGrid-DoorKey-5x5-v0", "minigrid", "minigrid"),
        ("highway-fast-v0", "highway_env", "highway-env"),
        ("FetchReach-v4", "gymnasium_robotics", "gymnasium-robotics"),
        ("LunarLander-v3", "Box2D", "gymnasium[box2d]"),
    ],
)
def test_a_missing_library_is_named_with_what_installs_it(
    env_id: str, package: str, requirement: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ValueError, match=re.escape(f"pip install '{requirement}'")):
        make_vector_env(env_id, 1)


@pytest.mark.parametrize("env_id", ["ALE/Pong-v5", "Pong-v4", "PongNoFrameskip", "ale_py:ALE/Pong"])
def test_atari_without_ale_py_names_the_extra(env_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "kubebeast_envserver.envs.atari", None)
    monkeypatch.delattr(envs, "atari", raising=False)
    with pytest.raises(ValueError, match=r"Atari games need ale-py: pip install 'kubebeast\[atari\]'"):
        make_vector_env(env_id, 1)


def test_a_class_that_is_not_registered_is_told_how() -> None:
    with pytest.raises(ValueError, match=r"broken has a class of this name: register it there.*broken:Game-v0"):
        make_vector_env("broken:Game", 1)


@pytest.mark.parametrize("module", ["./plugged.py", "plugged.py", ".plugged", "../plugged"])
def test_a_file_is_no_name_of_a_module(module: str) -> None:
    with pytest.raises(ValueError, match=r"is no name of a module: the file plugged\.py in this folder is plugged"):
        make_vector_env(f"{module}:Plugged/Game-v1", 1)


def test_an_id_of_a_module_that_another_one_hides_is_told_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "platform.py").write_text(AT_IMPORT)
    for name in ("platform:procgen-like-heist-v0", "platform:vector/procgen-like-heist-v0"):
        with pytest.raises(
            ValueError, match=rf"env = '{name}'.*; the module platform is .*, not {tmp_path}/platform\.py"
        ):
            make_vector_env(name, 1)
