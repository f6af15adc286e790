"""The wrapper of the examples hides the velocities of CartPole and leaves the positions."""

from pathlib import Path

import numpy as np
import pytest

from kubebeast_common.spec.env_config import Wrapper
from kubebeast_envserver import make_vector_env

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"


def test_positions_are_left_and_velocities_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    whole = make_vector_env("CartPole-v1", 2, seed=1)
    hidden = make_vector_env("CartPole-v1", 2, seed=1, wrappers=[Wrapper("hide_velocities:HideVelocities")])

    assert hidden.spec_observation[0].shape == (2,)
    np.testing.assert_array_equal(hidden.reset().observation[0], whole.reset().observation[0][:, ::2])
