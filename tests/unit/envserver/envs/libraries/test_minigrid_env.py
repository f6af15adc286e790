"""MiniGrid's environments play without settings; a module with its names and spaces replaces it here."""

import sys
from collections.abc import Iterator
from pathlib import Path

import gymnasium
import numpy as np
import pytest

from kubebeast_common.spec.env_config import Wrapper
from kubebeast_common.spec.leaves import Leaf
from kubebeast_envserver.envs.factory import make_vector_env
from kubebeast_envserver.rows.advice import collected

PACKAGE = {
    "__init__": """
import gymnasium
def register_minigrid_envs():
    gymnasium.register("MiniGrid-DoorKey-5x5-v0", entry_point="minigrid.minigrid_env:DoorKeyEnv", max_episode_steps=250)
register_minigrid_envs()
""",
    "minigrid_env": """
import gymnasium
import numpy as np
class MissionSpace(gymnasium.spaces.Space):
    def __init__(self):
        super().__init__(dtype=str)
    def contains(self, x):
        return isinstance(x, str)
    def __eq__(self, other):
        return isinstance(other, MissionSpace)
class MiniGridEnv(gymnasium.Env):
    def __init__(self, render_mode=None):
        image = gymnasium.spaces.Box(0, 255, (7, 7, 3), np.uint8)
        direction = gymnasium.spaces.Discrete(4)
        self.observation_space = gymnasium.spaces.Dict(
            {"image": image, "direction": direction, "mission": MissionSpace()}
        )
        self.action_space = gymnasium.spaces.Discrete(7)
    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.observe(), {}
    def step(self, action):
        return self.observe(), 0, False, False, {}
    def observe(self):
        image = np.broadcast_to(np.array([10, 5, 2], np.uint8), (7, 7, 3))
        return {"image": image, "direction": 3, "mission": "use the key to open the door"}
class DoorKeyEnv(MiniGridEnv):
    pass
""",
    "wrappers": """
import gymnasium
import numpy as np
class ImgObsWrapper(gymnasium.ObservationWrapper):
    def __init__(self, env):
        super().__init__(env)
        self.observation_space = env.observation_space.spaces["image"]
    def observation(self, obs):
        return obs["image"]
class FullyObsWrapper(gymnasium.ObservationWrapper):
    def __init__(self, env):
        super().__init__(env)
        image = gymnasium.spaces.Box(0, 255, (5, 5, 3), "uint8")
        self.observation_space = gymnasium.spaces.Dict({**env.observation_space.spaces, "image": image})
    def observation(self, obs):
        return {**obs, "image": np.full((5, 5, 3), 5, np.uint8)}
class RGBImgPartialObsWrapper(gymnasium.ObservationWrapper):
    def __init__(self, env):
        super().__init__(env)
        image = gymnasium.spaces.Box(0, 255, (56, 56, 3), "uint8")
        self.observation_space = gymnasium.spaces.Dict({**env.observation_space.spaces, "image": image})
    def observation(self, obs):
        return {**obs, "image": np.full((56, 56, 3), 200, np.uint8)}
""",
}
ENV = "MiniGrid-DoorKey-5x5-v0"
DIRECTION = Leaf("direction", "int64", (), num_categories=4)


@pytest.fixture(autouse=True)
def minigrid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Puts the package on the import path, not imported."""
    (tmp_path / "minigrid").mkdir()
    for name, text in PACKAGE.items():
        (tmp_path / "minigrid" / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    for name in [name for name in sys.modules if name.partition(".")[0] == "minigrid"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(gymnasium.envs.registration, "registry", dict(gymnasium.registry))
    yield
    for name in [name for name in sys.modules if name.partition(".")[0] == "minigrid"]:
        del sys.modules[name]


def test_a_newcomers_command_plays_with_an_image_of_numbers_to_1_and_without_the_mission() -> None:
    with collected() as advice:
        env = make_vector_env(ENV, 2)
    assert env.spec_observation == [DIRECTION, Leaf("image", "float32", (7, 7, 3))]
    rows = env.reset()
    rows.require_whole()
    np.testing.assert_allclose(rows.observation[1], np.broadcast_to([1.0, 1.0, 2 / 3], (2, 7, 7, 3)), rtol=1e-6)
    assert len(advice) == 1 and "the observation at 'mission' is a text" in advice[0]


@pytest.mark.parametrize(
    ("wrapper", "leaf"),
    [
        ("ImgObsWrapper", Leaf("", "float32", (7, 7, 3))),
        ("FullyObsWrapper", Leaf("image", "float32", (5, 5, 3))),
        ("RGBImgPartialObsWrapper", Leaf("image", "uint8", (56, 56, 3))),
    ],
)
def test_images_of_its_wrappers_have_the_bounds_that_they_keep(wrapper: str, leaf: Leaf) -> None:
    env = make_vector_env(ENV, 1, wrappers=[Wrapper(f"minigrid.wrappers:{wrapper}")])
    assert env.spec_observation[-1] == leaf
    env.reset().require_whole()


@pytest.mark.parametrize(
    ("env_id", "leaf"),
    [
        (f"vector/{ENV}", Leaf("image", "float32", (7, 7, 3))),
        ("vector/CartPole-v1", Leaf("", "float32", (4,))),
    ],
)
def test_environments_that_gymnasium_steps_together_have_the_same_bounds(env_id: str, leaf: Leaf) -> None:
    env = make_vector_env(env_id, 2)
    assert env.spec_observation[-1] == leaf
    env.reset().require_whole()


def test_an_environment_of_the_users_own_that_is_one_of_minigrids_has_them_too(tmp_path: Path) -> None:
    (tmp_path / "my_grid.py").write_text(
        "import gymnasium\nfrom minigrid.minigrid_env import MiniGridEnv\n"
        "class Mine(MiniGridEnv): pass\n"
        "gymnasium.register('Mine-v0', entry_point=Mine)\n"
    )
    env = make_vector_env("my_grid:Mine-v0", 1)
    assert env.spec_observation[-1] == Leaf("image", "float32", (7, 7, 3))
    sys.modules.pop("my_grid")
