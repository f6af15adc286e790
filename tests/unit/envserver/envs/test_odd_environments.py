"""Environments play even if they lack usual attributes, or change NumPy's settings and warnings."""

import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

from kubebeast_envserver.envs.factory import EnvironmentFailure, make_vector_env

ODD_ATTRIBUTES = """
import warnings
import gymnasium
import numpy as np
from kubebeast_envserver.catch import Catch
class Spaceless(Catch):
    @property
    def observation_space(self):
        raise NotImplementedError("not known before reset")
    @observation_space.setter
    def observation_space(self, space):
        pass
class Raising(Catch):  # Numbers that float32 rounds to 0, where NumPy is to raise at that and Python at every warning.
    def __init__(self):
        super().__init__()
        warnings.simplefilter("error")
        np.seterr(all="raise")
    def reset(self, **_):
        super().reset()
        return self._board() * 1e-200, {}
    def step(self, action):
        board, _, *rest = super().step(action)
        return board * 1e-200, 1e-200, *rest
class Kinds(gymnasium.Env):  # Observations of every kind of array.
    observation_space = gymnasium.spaces.Box(-100.0, 100.0, (3, 3))
    action_space = gymnasium.spaces.Discrete(2)
    def __init__(self, kind):
        self.kind = kind
    def reset(self, **_):
        return self.observe(), {}
    def step(self, action):
        return self.observe(), 0.1, False, False, {}
    def observe(self):
        array = np.arange(9, dtype=np.float32).reshape(3, 3)
        return {
            "matrix": lambda: np.matrix(array), "masked": lambda: np.ma.masked_array(array, array > 3),
            "unmasked": lambda: np.ma.masked_array(array), "list": array.tolist,
            "back": lambda: array[::-1, ::-1].copy()[::-1, ::-1],
            "big": lambda: array.astype(">f4"), "record": lambda: array.view(np.recarray),
            "object": lambda: array.astype(object), "complex": lambda: array.astype(complex),
        }[self.kind]()
class Undescribed(Catch):
    def __init__(self, metadata):
        super().__init__()
        self.metadata = metadata
for env in (Spaceless, Undescribed, Raising, Kinds):
    gymnasium.register(f"{env.__name__}-v0", entry_point=env, disable_env_checker=True)
"""


@pytest.fixture
def odd_attributes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Makes the module odd_attributes importable; its environments lack usual attributes."""
    (tmp_path / "odd_attributes.py").write_text(ODD_ATTRIBUTES)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(gymnasium.envs.registration, "registry", dict(gymnasium.registry))
    yield
    sys.modules.pop("odd_attributes", None)


@pytest.mark.usefixtures("odd_attributes")
def test_an_environment_whose_spaces_cannot_be_told_is_reported() -> None:
    with pytest.raises(EnvironmentFailure, match=r"has no spaces: NotImplementedError: not known before reset"):
        make_vector_env("odd_attributes:Spaceless-v0", 1)


@pytest.mark.usefixtures("odd_attributes")
@pytest.mark.parametrize("metadata", [None, {}, {"render_fps": "fast"}, {"render_modes": None, "render_fps": None}])
def test_an_environment_plays_whatever_it_tells_about_drawing(metadata: Any) -> None:
    env = make_vector_env("odd_attributes:Undescribed-v0", 1, env_kwargs={"metadata": metadata})
    assert not env.reset().failures


@pytest.fixture
def usual_errors() -> Iterator[None]:
    """Restores the settings of NumPy and of warnings that environments change."""
    with np.errstate(), warnings.catch_warnings():
        yield


@pytest.mark.usefixtures("odd_attributes", "usual_errors")
@pytest.mark.parametrize("prefix", ["", "vector/"])
def test_an_environment_that_lets_numpy_raise_plays(prefix: str) -> None:
    env = make_vector_env(f"odd_attributes:{prefix}Raising-v0", 2, seed=1)
    env.reset().require_whole()
    for _ in range(20):
        rows = env.step([np.ones(2, np.int64)])
        rows.require_whole()
    assert not rows.rewards.any()


@pytest.mark.usefixtures("odd_attributes")
@pytest.mark.parametrize("kind", ["unmasked", "list", "back", "big", "record"])
def test_arrays_of_any_kind_are_rows(kind: str) -> None:
    env = make_vector_env("odd_attributes:Kinds-v0", 2, env_kwargs={"kind": kind})
    for rows in (env.reset(), env.step([np.zeros(2, np.int64)])):
        rows.require_whole()
        assert rows.observation[0].tolist() == [np.arange(9.0).reshape(3, 3).tolist()] * 2


@pytest.mark.usefixtures("odd_attributes")
@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
def test_a_matrix_is_an_array() -> None:
    env = make_vector_env("odd_attributes:Kinds-v0", 2, env_kwargs={"kind": "matrix"})
    assert env.reset().observation[0].shape == (2, 3, 3)


@pytest.mark.usefixtures("odd_attributes")
@pytest.mark.parametrize(
    ("kind", "message"),
    [("masked", "masked array with masked elements"), ("object", "object"), ("complex", "complex128")],
)
def test_arrays_whose_numbers_are_not_known_are_named(kind: str, message: str) -> None:
    env = make_vector_env("odd_attributes:Kinds-v0", 1, env_kwargs={"kind": kind})
    with pytest.raises(EnvironmentFailure, match=message):
        env.reset().require_whole()


@pytest.mark.usefixtures("odd_attributes")
def test_returns_are_as_exact_as_rewards() -> None:
    env = make_vector_env("odd_attributes:Kinds-v0", 1, env_kwargs={"kind": "list"}, time_limit=1000)
    env.reset()
    rows = [env.step([np.zeros(1, np.int64)]) for _ in range(1000)]
    ((_, episode_return, length),) = rows[-1].episodes
    assert episode_return == pytest.approx(100.0, abs=1e-10)
    assert length == 1000
