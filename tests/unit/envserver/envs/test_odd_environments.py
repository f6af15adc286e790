"""Environments that lack what every environment has."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium
import pytest

from kubebeast_envserver.envs.factory import EnvironmentFailure, make_vector_env

ODD_ATTRIBUTES = """
import gymnasium
from kubebeast_envserver.catch import Catch
class Spaceless(Catch):
    @property
    def observation_space(self):
        raise NotImplementedError("not known before reset")
    @observation_space.setter
    def observation_space(self, space):
        pass
class Undescribed(Catch):
    def __init__(self, metadata):
        super().__init__()
        self.metadata = metadata
for env in (Spaceless, Undescribed):
    gymnasium.register(f"{env.__name__}-v0", entry_point=env, disable_env_checker=True)
"""


@pytest.fixture
def odd_attributes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The module odd_attributes, whose environments lack what every environment has."""
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
