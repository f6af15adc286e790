"""Trained models on disk, for the commands that use them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from kubebeast_common.cli.settings import section_from_settings
from kubebeast_common.ids.env_id import is_same_env
from kubebeast_common.spec.env_config import EnvConfig, Wrapper, parse_wrappers
from kubebeast_common.spec.env_spec import EnvSpec
from kubebeast_common.user_code import message
from kubebeast_envserver.envs.factory import resolve_config
from kubebeast_envserver.rows.running_statistics import Statistics
from kubebeast_learner.config import CheckpointConfig, ConfigError, ModelConfig, TasksConfig
from kubebeast_learner.models import Model, make_model
from kubebeast_learner.models.finite import first_not_finite, names_of_not_finite
from kubebeast_learner.run.checkpoint import CheckpointStore
from kubebeast_learner.run.checkpoint_file import CheckpointError, load_path
from kubebeast_learner.run.state import Checkpoint, taking_over
from kubebeast_runs.folder import folder_of
from kubebeast_runs.storage.choice import storage_of


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainedModel:
    model: Model
    """The model on the CPU, in float32 and in evaluation mode."""
    env_spec: EnvSpec
    """Spec of the environment of its training."""
    settings: Mapping[str, Any]
    """Settings of its training, flat."""
    path: Path
    """The file that it was loaded from."""
    step: int
    """Env-steps of its training."""
    tasks: tuple[str, ...] = ()
    """Tasks of its training in order, if there are several."""
    task_configs: Mapping[str, EnvConfig] = field(default_factory=dict)
    """Configurations of the environments of these tasks, as far as env-servers sent them."""
    env_statistics: tuple[Statistics, ...] = ()
    """Statistics of the wrappers of its environments."""
    own_wrappers: tuple[Wrapper, ...] = ()
    """Wrappers that a user gave to the `train` or `mono` of this run; none if the model is from a file, which may be
    from any source. All others in env_config are from an env-server or from an unknown source."""
    is_trusted: bool = False
    """True if the modules that it names may be imported."""

    @property
    def env_id(self) -> str:
        return self.env_spec.env_id

    @property
    def task(self) -> int | None:
        """Number of the task in env_spec; None if there is only one task."""
        return self.tasks.index(self.env_id) if self.tasks else None

    @property
    def log_info(self) -> tuple[str, ...]:
        """Keys of the numbers in the info of episodes that its training logged."""
        return tuple(self.settings.get("log_info", ()))

    def playing(self, env: str) -> "TrainedModel":
        """Returns the same model for the task `env`, if it has several; "" keeps its task.

        Raises ConfigError if it has no such task.
        """
        if not self.tasks or env in ("", self.env_id):
            return self
        task = env if env in self.tasks else next((task for task in self.tasks if is_same_env(env, task)), None)
        if task is None:
            raise ConfigError(f"env = {env!r}: {self.path} was trained on the tasks {', '.join(self.tasks)}")
        return replace(self, env_spec=replace(self.env_spec, env_id=task, env_config=self.task_configs.get(task)))

    @property
    def env_config(self) -> EnvConfig | None:
        """Configuration of the environment; None if neither an env-server nor the settings contain it."""
        if self.env_spec.env_config is not None or "preset" not in self.settings:
            return self.env_spec.env_config
        try:
            return resolve_config(self.env_id, self.settings["preset"])
        except ValueError:  # ale-py may be missing here
            return None


def load_trained(config: CheckpointConfig) -> TrainedModel:
    """Loads the model of the named file, or of the run's newest checkpoint.

    Raises:
        CheckpointError: If the checkpoint cannot be read or does not fit its model.
        ConfigError: If there is no checkpoint, or if the file names code and is not trusted.
    """
    path, state = find_checkpoint(config)
    is_own = config.checkpoint is None
    return make_trained(path, state, is_own=is_own, is_trusted=is_own or config.trust_checkpoint)


def make_trained(path: Path, state: dict[str, Any], *, is_own: bool, is_trusted: bool) -> TrainedModel:
    """Makes the model of a checkpoint.

    Args:
        path: Place of the checkpoint, for messages.
        state: Its content.
        is_own: True if it is of a run that the user has named; others may be from any source.
        is_trusted: True if the modules that it names may be imported.

    Raises:
        CheckpointError: If the checkpoint does not fit its model.
        ConfigError: If it names code and is not trusted.
    """
    checkpoint = Checkpoint.of(str(path), state)
    with taking_over(str(path), "config"):
        settings = section_from_settings(ModelConfig, checkpoint.config)
        tasks = section_from_settings(TasksConfig, checkpoint.config)
        own_wrappers = parse_wrappers(str(checkpoint.config.get("wrappers", "")))
    with taking_over(str(path), "env_statistics"):
        statistics = tuple(map(Statistics.from_plain, checkpoint.env_statistics))
    if settings.own_code and not is_trusted:
        raise ConfigError(
            f"checkpoint = {str(path)!r}: it names code, {', '.join(settings.own_code)}: add --trust-checkpoint to "
            "import and run it here"
        )
    return TrainedModel(
        model=_make_model(path, checkpoint.env_spec, settings, tasks.num_tasks, checkpoint.learner["model"]),
        env_spec=checkpoint.env_spec,
        settings=checkpoint.config,
        path=path,
        step=checkpoint.step,
        tasks=tasks.tasks,
        task_configs=checkpoint.task_configs,
        env_statistics=statistics,
        own_wrappers=own_wrappers if is_own else (),
        is_trusted=is_trusted,
    )


def _make_model(
    path: Path, spec: EnvSpec, settings: ModelConfig, num_tasks: int, weights: Mapping[str, torch.Tensor]
) -> Model:
    """Makes the model in evaluation mode, with `weights`.

    Raises ConfigError if code cannot be imported, and CheckpointError if weights do not fit or are not finite.
    """
    try:
        make = partial(make_model, spec.observation, spec.action, settings, num_tasks)
        if not settings.own_code:
            _require_fit(make, weights)
        model = make()
        made_so = names_of_not_finite(model.state_dict().items())
        model.load_state_dict(weights)
    except ConfigError:
        raise
    except Exception as error:  # invalid values may raise any error
        raise CheckpointError(f"checkpoint {path} does not fit its model: {message(error)}") from error
    if found := first_not_finite(model.state_dict().items(), made_so):
        raise CheckpointError(f"checkpoint {path} cannot be played: {found}")
    return model.eval()


def _require_fit(make: Callable[[], Model], weights: Mapping[str, torch.Tensor]) -> None:
    """Raises RuntimeError for weights that do not fit a model without memory: the real one may be too large."""
    with torch.device("meta"):
        make().load_state_dict(weights, assign=True)


def find_checkpoint(config: CheckpointConfig) -> tuple[Path, dict[str, Any]]:
    """Returns path and state of the named file or the run's newest checkpoint. Raises ConfigError if there is none."""
    try:
        if config.checkpoint is not None:
            path = config.checkpoint.expanduser()
            if not path.is_file():
                raise ConfigError(f"checkpoint = {str(path)!r}: there is no such file")
            return path, load_path(path)
        folder = folder_of(config.savedir, config.xpid)
        found = CheckpointStore(storage_of(folder), keep=1).load_newest()
    except OSError as error:
        raise ConfigError(f"xpid = {config.xpid!r}: its checkpoints cannot be read: {error}") from error
    if found is None:
        raise ConfigError(f"xpid = {config.xpid!r}: there is no checkpoint in {folder}")
    place, state = found
    return Path(place), state
