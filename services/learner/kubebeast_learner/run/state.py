"""The state of a training in a checkpoint: every value that training and playing read is checked here, once.

The file may come from any source. An invalid value raises CheckpointError, which names the file and the value.
"""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from kubebeast_common.cli.settings import section_from_settings
from kubebeast_common.spec.env_config import EnvConfig
from kubebeast_common.spec.env_spec import EnvSpec
from kubebeast_common.user_code import message
from kubebeast_learner.config import ModelConfig, TasksConfig
from kubebeast_learner.run.checkpoint_file import FORMAT, CheckpointError

MAX_COUNT = 2**53
"""Maximum number of steps and updates, up to which a float represents every integer."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Checkpoint:
    """The state of a training. From a weights file it has only the values for playing."""

    step: int
    """Env-steps trained on."""
    env_spec: EnvSpec
    config: Mapping[str, Any]
    """Settings, flat."""
    learner: Mapping[str, Any]
    """`model`, and, to go on with the training, `optimizer` and `version` (Learner.state_dict)."""
    task_configs: Mapping[str, EnvConfig] = field(default_factory=dict)
    """Configurations of the environments by task, as far as env-servers sent them."""
    env_statistics: Sequence[Mapping[str, Any]] = ()
    """Statistics of the environments' wrappers, as plain values."""
    rng: Mapping[str, Any] = field(default_factory=dict)
    """States of the random number generators."""
    stats: Mapping[str, Any] = field(default_factory=dict)
    """RunStats.state_dict."""
    score: float | None = None
    """RunStats.training_score, by which a run finds its best checkpoints."""

    @classmethod
    def of(cls, place: str, state: Mapping[str, Any]) -> "Checkpoint":
        """Checks a state that was read from `place`, and returns it.

        Raises CheckpointError unless it has all values that playing reads, each of the right type.
        """
        with taking_over(place, "step"):
            step = _count(state["step"])
        with taking_over(place, "env_spec"):
            env_spec = EnvSpec.from_plain(_mapping(state["env_spec"]))
        with taking_over(place, "config"):
            config = _mapping(state["config"])
            section_from_settings(ModelConfig, config)
            section_from_settings(TasksConfig, config)
        with taking_over(place, "task_configs"):
            plain = _mapping(state.get("task_configs", {}))
            task_configs = {task: EnvConfig.from_plain(told) for task, told in plain.items()}
        with taking_over(place, "learner.model"):
            learner = _mapping(state["learner"])
            for name, tensor in _mapping(learner["model"]).items():
                if not isinstance(tensor, Tensor):
                    raise ValueError(f"{name} is {_kind(tensor)}, not a tensor")
        further = {name: state[name] for name in ("env_statistics", "rng", "stats") if name in state}
        return cls(step=step, env_spec=env_spec, config=config, learner=learner, task_configs=task_configs, **further)

    def require_resumable(self, place: str) -> None:
        """Raises CheckpointError unless it has the values that a training takes over.

        Weights, optimizer and statistics must also fit the learner, which is checked within `taking_over`.
        """
        with taking_over(place, "learner.version"):
            _count(self.learner["version"])
        with taking_over(place, "learner.optimizer"):
            _mapping(self.learner["optimizer"])
        for name in ("rng", "stats"):
            with taking_over(place, name):
                if not _mapping(getattr(self, name)):
                    raise ValueError("there is none")

    def to_plain(self) -> dict[str, Any]:
        """Returns tensors, plain values and containers of them, as `CheckpointStore.save` takes them."""
        return {
            "format": FORMAT,
            "step": self.step,
            "env_spec": self.env_spec.to_plain(),
            "task_configs": {task: config.to_plain() for task, config in self.task_configs.items()},
            "env_statistics": list(self.env_statistics),
            "config": self.config,
            "learner": self.learner,
            "rng": self.rng,
            "stats": self.stats,
            "score": self.score,
        }


@contextlib.contextmanager
def taking_over(place: str, name: str) -> Iterator[None]:
    """Wraps code that reads a part of the state: all its errors become a CheckpointError with the part's name."""
    try:
        yield
    except CheckpointError:
        raise
    except KeyError as error:
        raise CheckpointError(f"checkpoint {place}: {name}: there is no {error}") from error
    except Exception as error:  # values of a wrong type may raise any error
        raise CheckpointError(f"checkpoint {place}: {name}: {message(error) or type(error).__name__}") from error


def _mapping(value: object) -> Mapping[str, Any]:
    if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
        raise ValueError(f"it is {_kind(value)}, not a mapping of names to values")
    return value


def _count(value: object) -> int:
    if type(value) is not int or not 0 <= value <= MAX_COUNT:
        raise ValueError(f"it is {value!r:.50}, not a count from 0 to {MAX_COUNT}")
    return value


def _kind(value: object) -> str:
    return "a mapping with other keys" if isinstance(value, Mapping) else f"{type(value).__name__} {value!r:.50}"
