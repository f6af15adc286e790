"""A trained model as the commands that use one find it on the disk."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from kubebeast_common.env_config import EnvConfig, Wrapper, parse_wrappers
from kubebeast_envserver.envs.factory import resolve_config
from kubebeast_learner.actors.env_spec import EnvSpec
from kubebeast_learner.config import CheckpointConfig, ConfigError, ModelConfig, TasksConfig
from kubebeast_learner.config.sources import section_from_settings
from kubebeast_learner.models import Model, ModelSpecError, make_model
from kubebeast_learner.run.checkpoint import CheckpointError, CheckpointStore, load


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainedModel:
    model: Model
    """On the CPU, in float32, in evaluation mode."""
    env_spec: EnvSpec
    """Of the environment it was trained on."""
    settings: Mapping[str, Any]
    """Of its training, flat."""
    path: Path
    """The file it came from."""
    step: int
    """Env-steps it was trained for."""
    tasks: tuple[str, ...] = ()
    """Those that it was trained on, in order, where there are several."""
    task_configs: Mapping[str, EnvConfig] = field(default_factory=dict)
    """How the environments of these were made, as far as env-servers told."""
    own_wrappers: tuple[Wrapper, ...] = ()
    """Those that a user named to the `train` or `mono` of this run; none where the model is from a file, which may be
    anybody's. All others in env_config were sent by an env-server or written by a stranger."""

    @property
    def env_id(self) -> str:
        return self.env_spec.env_id

    @property
    def task(self) -> int | None:
        """Number of the task that env_spec describes; None where there is one task."""
        return self.tasks.index(self.env_id) if self.tasks else None

    def playing(self, env: str) -> "TrainedModel":
        """The same model for the task `env`, where it has several; "" leaves the one that it has.

        ConfigError where it knows no such task.
        """
        if not self.tasks or env in ("", self.env_id):
            return self
        if env not in self.tasks:
            raise ConfigError(f"env = {env!r}: {self.path} was trained on the tasks {', '.join(self.tasks)}")
        return replace(self, env_spec=replace(self.env_spec, env_id=env, env_config=self.task_configs.get(env)))

    @property
    def env_config(self) -> EnvConfig | None:
        """How the environment was made; None where neither env-server nor settings tell."""
        if self.env_spec.env_config is not None or "preset" not in self.settings:
            return self.env_spec.env_config
        try:
            return resolve_config(self.env_id, self.settings["preset"])
        except ValueError:  # ale-py may be missing here
            return None


def load_trained(config: CheckpointConfig, *, is_own: bool = False) -> TrainedModel:
    """The named file's model, or that of the run's newest readable checkpoint. Raises ConfigError, CheckpointError.

    is_own: the named file is of a run that the user has named, and not one that may be anybody's.
    """
    path, state = find_checkpoint(config)
    try:
        env_spec = EnvSpec.from_plain(state["env_spec"])
        own_wrappers = parse_wrappers(str(state["config"].get("wrappers", "")))
        told = {task: EnvConfig.from_plain(plain) for task, plain in state.get("task_configs", {}).items()}
    except ValueError as error:
        raise CheckpointError(f"checkpoint {path} does not tell how its environment is made: {error}") from error
    tasks = section_from_settings(TasksConfig, state["config"])
    try:
        settings = section_from_settings(ModelConfig, state["config"])
        model = make_model(env_spec.observation, env_spec.action, settings, tasks.num_tasks)
        model.load_state_dict(state["learner"]["model"])
    except (ModelSpecError, RuntimeError) as error:
        raise CheckpointError(f"checkpoint {path} does not fit its model: {' '.join(str(error).split())}") from error
    model.eval()
    return TrainedModel(
        model=model,
        env_spec=env_spec,
        settings=state["config"],
        path=path,
        step=state["step"],
        tasks=tasks.tasks,
        task_configs=told,
        own_wrappers=own_wrappers if is_own or config.checkpoint is None else (),
    )


def find_checkpoint(config: CheckpointConfig) -> tuple[Path, dict[str, Any]]:
    """Path and state of the named file, or of the run's newest readable checkpoint. ConfigError when there is none."""
    if config.checkpoint is not None:
        path = config.checkpoint.expanduser()
        if not path.is_file():
            raise ConfigError(f"checkpoint = {str(path)!r}: there is no such file")
        return path, load(path)
    folder = config.savedir.expanduser() / config.xpid
    found = CheckpointStore(folder, keep=1).load_newest()
    if found is None:
        raise ConfigError(f"xpid = {config.xpid!r}: there is no checkpoint in {folder}")
    return found
