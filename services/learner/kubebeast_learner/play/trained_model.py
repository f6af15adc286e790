"""Trained models on disk, for the commands that use them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

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
from kubebeast_learner.run.checkpoint import CheckpointReader
from kubebeast_learner.run.checkpoint_file import CheckpointError, load_path
from kubebeast_learner.run.state import Checkpoint, taking_over
from kubebeast_runs.folder import place_of
from kubebeast_runs.home import evaluations_of, files_of
from kubebeast_runs.scores import ScoreError
from kubebeast_runs.weights import NAME as WEIGHTS


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainedModel:
    model: Model
    """The model on the CPU, in float32 and in evaluation mode."""
    env_spec: EnvSpec
    """Spec of the environment of its training."""
    settings: Mapping[str, Any]
    """Settings of its training, flat."""
    place: str
    """Path or URL of the file that it was loaded from."""
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
    league: Mapping[str, Any] = field(default_factory=dict)
    """The opponents of its training (League.state_dict), unchecked; empty without any."""
    notes: tuple[str, ...] = ()
    """Reasons for the choice of its checkpoint, for readers of the output."""

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
            raise ConfigError(f"env = {env!r}: {self.place} was trained on the tasks {', '.join(self.tasks)}")
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
    """Loads the model of the named file, or of the run's newest or best checkpoint.

    Raises:
        CheckpointError: If the checkpoint cannot be read or does not fit its model.
        ConfigError: If there is no checkpoint, or if the file names code and is not trusted.
    """
    found, is_own = _find_checkpoint(config), config.checkpoint is None
    trained = make_trained(found.place, found.state, is_own=is_own, is_trusted=is_own or config.trust_checkpoint)
    return replace(trained, notes=found.notes)


def make_trained(place: str, state: dict[str, Any], *, is_own: bool, is_trusted: bool) -> TrainedModel:
    """Makes the model of a checkpoint.

    Args:
        place: Path or URL of the checkpoint, for messages.
        state: Its content.
        is_own: True if it is of a run that the user has named; others may be from any source.
        is_trusted: True if the modules that it names may be imported.

    Raises:
        CheckpointError: If the checkpoint does not fit its model.
        ConfigError: If it names code and is not trusted.
    """
    checkpoint = Checkpoint.of(place, state)
    with taking_over(place, "config"):
        settings = section_from_settings(ModelConfig, checkpoint.config)
        tasks = section_from_settings(TasksConfig, checkpoint.config)
        own_wrappers = parse_wrappers(str(checkpoint.config.get("wrappers", "")))
    with taking_over(place, "env_statistics"):
        statistics = tuple(map(Statistics.from_plain, checkpoint.env_statistics))
    if settings.own_code and not is_trusted:
        raise ConfigError(
            f"checkpoint = {place!r}: it names code, {', '.join(settings.own_code)}: add --trust-checkpoint to "
            "import and run it here"
        )
    return TrainedModel(
        model=_make_model(place, checkpoint.env_spec, settings, tasks.num_tasks, checkpoint.learner["model"]),
        env_spec=checkpoint.env_spec,
        settings=checkpoint.config,
        place=place,
        step=checkpoint.step,
        tasks=tasks.tasks,
        task_configs=checkpoint.task_configs,
        env_statistics=statistics,
        own_wrappers=own_wrappers if is_own else (),
        is_trusted=is_trusted,
        league=checkpoint.stats.get("league", {}),
    )


def _make_model(
    place: str, spec: EnvSpec, settings: ModelConfig, num_tasks: int, weights: Mapping[str, torch.Tensor]
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
        raise CheckpointError(f"checkpoint {place} does not fit its model: {message(error)}") from error
    if found := first_not_finite(model.state_dict().items(), made_so):
        raise CheckpointError(f"checkpoint {place} cannot be played: {found}")
    return model.eval()


def _require_fit(make: Callable[[], Model], weights: Mapping[str, torch.Tensor]) -> None:
    """Raises RuntimeError for weights that do not fit a model without memory: the real one may be too large."""
    with torch.device("meta"):
        make().load_state_dict(weights, assign=True)


class _Found(NamedTuple):
    place: str
    state: dict[str, Any]
    notes: tuple[str, ...] = ()


def _find_checkpoint(config: CheckpointConfig) -> _Found:
    """Reads the named file, or the run's newest or best checkpoint. Raises ConfigError if there is none."""
    try:
        if config.checkpoint is not None:
            path = config.checkpoint.expanduser()
            path = path / WEIGHTS if path.is_dir() else path
            if not path.is_file():
                raise ConfigError(f"checkpoint = {str(path)!r}: there is no such file")
            return _Found(str(path), load_path(path))
        reader = CheckpointReader(files_of(config.savedir, config.xpid))
        if config.best:
            best, place, state = reader.load_best(evaluations_of(config.savedir, config.xpid), config.best_evaluator)
            return _Found(place, state, (str(best),))
        newest = reader.load_newest()
    except ScoreError as error:
        raise ConfigError(f"best = True, best_evaluator = {config.best_evaluator!r}: {error}") from error
    except OSError as error:
        raise ConfigError(f"xpid = {config.xpid!r}: its checkpoints cannot be read: {error}") from error
    if newest is None:
        raise ConfigError(f"xpid = {config.xpid!r}: there is no checkpoint in {place_of(config.savedir, config.xpid)}")
    return _Found(*newest)
