"""Validation of a checkpoint's state: every value that training and playing read is checked here, once.

The file may come from any source. An invalid value raises CheckpointError, which names the file and the value.
"""

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from kubebeast_common.cli.settings import section_from_settings
from kubebeast_common.spec.env_config import EnvConfig
from kubebeast_common.spec.env_spec import EnvSpec
from kubebeast_common.user_code import message
from kubebeast_learner.config import ModelConfig, TasksConfig
from kubebeast_learner.run.checkpoint_file import CheckpointError

MAX_COUNT = 2**53
"""Maximum number of steps and updates, up to which a float represents every integer."""


def require_playable(path: Path, state: Mapping[str, Any]) -> None:
    """Raises CheckpointError unless `state` has all values that playing reads, each of the right type.

    They are step, env_spec, config, task_configs and learner.model.
    """
    with _of(path, "step"):
        _require_count(state["step"])
    with _of(path, "env_spec"):
        EnvSpec.from_plain(_mapping(state["env_spec"]))
    with _of(path, "config"):
        settings = _mapping(state["config"])
        section_from_settings(ModelConfig, settings)
        section_from_settings(TasksConfig, settings)
    with _of(path, "task_configs"):
        for told in _mapping(state.get("task_configs", {})).values():
            EnvConfig.from_plain(told)
    with _of(path, "learner.model"):
        for name, tensor in _mapping(_mapping(state["learner"])["model"]).items():
            if not isinstance(tensor, Tensor):
                raise ValueError(f"{name} is {_kind(tensor)}, not a tensor")


def require_resumable(path: Path, state: Mapping[str, Any]) -> None:
    """Raises CheckpointError unless `state` is playable and has the values that a training takes over.

    Weights, optimizer and statistics must also fit the learner, which is checked within `taking_over`.
    """
    require_playable(path, state)
    with _of(path, "learner.version"):
        _require_count(state["learner"]["version"])
    with _of(path, "learner.optimizer"):
        _mapping(state["learner"]["optimizer"])
    for name in ("rng", "stats"):
        with _of(path, name):
            _mapping(state[name])


@contextlib.contextmanager
def taking_over(path: Path, name: str) -> Iterator[None]:
    """Wraps code that reads a part of the state: all its errors become a CheckpointError with the part's name."""
    with _of(path, name):
        yield


@contextlib.contextmanager
def _of(path: Path, name: str) -> Iterator[None]:
    try:
        yield
    except CheckpointError:
        raise
    except KeyError as error:
        raise CheckpointError(f"checkpoint {path}: {name}: there is no {error}") from error
    except Exception as error:  # values of a wrong type may raise any error
        raise CheckpointError(f"checkpoint {path}: {name}: {message(error) or type(error).__name__}") from error


def _mapping(value: object) -> Mapping[str, Any]:
    if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
        raise ValueError(f"it is {_kind(value)}, not a mapping of names to values")
    return value


def _require_count(value: object) -> None:
    if type(value) is not int or not 0 <= value <= MAX_COUNT:
        raise ValueError(f"it is {value!r:.50}, not a count from 0 to {MAX_COUNT}")


def _kind(value: object) -> str:
    return "a mapping with other keys" if isinstance(value, Mapping) else f"{type(value).__name__} {value!r:.50}"
