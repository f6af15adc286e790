"""Runs with untrained models for the tests of the commands that play, show or export one."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from kubebeast_common.cli.settings import as_settings
from kubebeast_common.spec.env_config import EnvConfig, Wrapper
from kubebeast_common.spec.env_spec import EnvSpec
from kubebeast_common.spec.leaves import Leaf
from kubebeast_envserver.envs.factory import make_vector_env, num_agents_of, resolve_config
from kubebeast_learner.config import LearnerConfig, ModelConfig, TrainingConfig
from kubebeast_learner.models import make_model
from kubebeast_learner.run import checkpoint
from kubebeast_learner.run.checkpoint import CheckpointStore
from kubebeast_runs.storage.local import LocalStorage

STEP = 1234


def write_run(
    folder: Path,
    env: str,
    model: ModelConfig,
    *,
    preset: Any = "auto",
    kwargs: dict[str, Any] | None = None,
    wrappers: Sequence[Wrapper] = (),
    time_limit: int = 0,
    settings: TrainingConfig | None = None,
) -> Path:
    """Writes a run folder with an untrained model for `env`; the checkpoint holds the settings of the environment."""
    num_agents = num_agents_of(env, kwargs, wrappers)
    hosted = make_vector_env(env, num_agents, preset, kwargs, wrappers=wrappers, time_limit=time_limit)
    hosted.close()
    leaves = hosted.spec_observation, hosted.spec_action
    told = resolve_config(env, preset, kwargs, wrappers, time_limit)
    return write_checkpoint(folder, env, *leaves, model, env_config=told, settings=settings)


def write_checkpoint(
    folder: Path,
    env: str,
    observation: Sequence[Leaf],
    action: Sequence[Leaf],
    model: ModelConfig,
    *,
    env_config: EnvConfig | None = None,
    settings: TrainingConfig | None = None,
    task_configs: Mapping[str, EnvConfig] | None = None,
) -> Path:
    """Writes a run folder with an untrained model.

    env_config: None if the env-servers sent no settings. settings: of the training command. task_configs: settings of
    the tasks in its task_shares.
    """
    torch.manual_seed(0)
    settings = settings or LearnerConfig()
    state = {
        "format": checkpoint.FORMAT,
        "step": STEP,
        "env_spec": EnvSpec.of(env, observation, action, env_config).to_plain(),
        "task_configs": {task: config.to_plain() for task, config in (task_configs or {}).items()},
        "config": as_settings(replace(settings, model=model)),
        "learner": {"model": make_model(observation, action, model, settings.tasks.num_tasks).state_dict()},
    }
    CheckpointStore(LocalStorage(folder), keep=1).save(state)
    return folder
