"""Runs with untrained models for the tests of the commands that play, show or export one."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from kubebeast_envserver.envs import make_vector_env
from kubebeast_envserver.spaces import Leaf
from kubebeast_learner import checkpoint
from kubebeast_learner.checkpoint import CheckpointStore
from kubebeast_learner.config import LocalFleetConfig, ModelConfig, TrainConfig
from kubebeast_learner.config_sources import as_settings
from kubebeast_learner.env_spec import EnvSpec
from kubebeast_learner.models import make_model

STEP = 1234


def write_run(folder: Path, env: str, model: ModelConfig, *, preset: Any = "auto") -> Path:
    """A run folder with the checkpoint of an untrained model for `env`."""
    hosted = make_vector_env(env, 1, preset)
    hosted.close()
    return write_checkpoint(folder, env, hosted.spec_observation, hosted.spec_action, model, preset=preset)


def write_checkpoint(
    folder: Path,
    env: str,
    observation: Sequence[Leaf],
    action: Sequence[Leaf],
    model: ModelConfig,
    preset: Any = "auto",
) -> Path:
    torch.manual_seed(0)
    state = {
        "format": checkpoint.FORMAT,
        "step": STEP,
        "env_spec": EnvSpec.of(env, observation, action).to_plain(),
        "config": as_settings(TrainConfig(model=model, fleet=LocalFleetConfig(env=env, preset=preset))),
        "learner": {"model": make_model(observation, action, model).state_dict()},
    }
    CheckpointStore(folder, keep=1).save(state)
    return folder
