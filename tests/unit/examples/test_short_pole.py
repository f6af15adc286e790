"""The wrapper of the examples makes a pole that falls earlier."""

from pathlib import Path

import numpy as np
import pytest

from kubebeast_common.spec.env_config import Wrapper
from kubebeast_envserver import make_vector_env

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"


def steps_of_an_episode(*wrappers: Wrapper) -> int:
    """Returns the number of steps until the pole falls if the cart is always pushed to the right."""
    env = make_vector_env("CartPole-v1", 1, seed=1, wrappers=list(wrappers))
    env.reset()
    num_steps = 1
    while not env.step([np.array([1])]).terminated[0]:
        num_steps += 1
    return num_steps


def test_a_short_pole_falls_earlier(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    assert steps_of_an_episode(Wrapper("short_pole:ShortPole")) < steps_of_an_episode()
