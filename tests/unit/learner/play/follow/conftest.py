"""Runs to follow."""

from pathlib import Path
from typing import Any

import pytest
import torch

from kubebeast_learner.config import ModelConfig
from tests.unit.learner.play.follow.followed_run import FollowedRun
from tests.unit.learner.play.playing import write_run


@pytest.fixture(scope="package")
def state(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Returns the state of a checkpoint with an untrained model for CartPole."""
    folder = write_run(tmp_path_factory.mktemp("runs") / "cartpole", "CartPole-v1", ModelConfig(model="mlp"))
    loaded: dict[str, Any] = torch.load(next(folder.glob("*.pt")), weights_only=True)
    return loaded


@pytest.fixture
def run(tmp_path: Path, state: dict[str, Any]) -> FollowedRun:
    return FollowedRun(tmp_path / "run", state)
