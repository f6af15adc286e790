"""`kubebeast check-env`: `kubebeast-envserver check`, and the model that the environment gets."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kubebeast_common.process.output import output_to_stderr
from kubebeast_common.spec.env_config import EnvConfig
from kubebeast_common.spec.env_spec import EnvSpec, describe
from kubebeast_envserver.envs.factory import resolve_config
from kubebeast_envserver.rows.limits import bytes_of_row
from kubebeast_envserver.trial.command import EXIT_VIOLATIONS
from kubebeast_envserver.trial.settings import TrialConfig
from kubebeast_envserver.trial.tables import describe_trial
from kubebeast_envserver.trial.trial import Trial, try_env
from kubebeast_learner.config import CheckEnvConfig, ConfigError, TrainingConfig
from kubebeast_learner.errors import ModelSpecError
from kubebeast_learner.machine import torch_state
from kubebeast_learner.models import describe_inputs, make_model
from kubebeast_learner.models.torsos.known_layouts import with_known_layout
from kubebeast_learner.training.sizes import check_memory


@dataclass(frozen=True, kw_only=True, slots=True)
class CheckedEnv:
    """The trial of an environment and the model that it would get."""

    env: str
    config: EnvConfig
    trial: Trial
    model: str
    """Description of the model's inputs; empty if there is no model."""
    num_parameters: int

    def to_plain(self) -> Mapping[str, Any]:
        own = {"model": self.model, "num_parameters": self.num_parameters}
        return {"env": self.env, **self.config.to_plain(), **self.trial.to_plain(), **own}


def run(config: CheckEnvConfig) -> int:
    """Runs the command. Returns the exit status, 1 for violations. Raises ConfigError if no environment can be made."""
    with output_to_stderr():  # the output of environments is not the result
        checked = check_env(config)
    if config.json:
        print(json.dumps(checked.to_plain()))
    else:
        model = f"{checked.model}; {checked.num_parameters:,} parameters" if checked.model else ""
        lines = describe_trial(checked.trial, config.max_message_mib, model)
        print("\n".join([describe(checked.env, checked.config), *lines]))
    return EXIT_VIOLATIONS if checked.trial.violations else 0


def check_env(config: CheckEnvConfig) -> CheckedEnv:
    """Tries the environment and makes its model. Raises ConfigError if no environment can be made."""
    try:
        made = resolve_config(config.env, **config.making)
    except ValueError as error:
        raise ConfigError(str(error)) from error
    names = "env", "steps", "episodes", "seed", "max_message_mib"
    settings = TrialConfig(**{name: getattr(config, name) for name in names}, **config.making)
    with torch_state.of_environments():
        trial = try_env(settings)
    model, num_parameters = _model_of(trial, config)
    return CheckedEnv(env=config.env, config=made, trial=trial, model=model, num_parameters=num_parameters)


def _model_of(trial: Trial, config: CheckEnvConfig) -> tuple[str, int]:
    """Returns the inputs of the model and the number of its parameters; adds a violation if there is no model."""
    if not 0 < bytes_of_row(trial.observation, trial.action) <= config.max_message_mib << 20:
        return "", 0
    try:
        spec = EnvSpec(config.env, tuple(trial.observation), tuple(trial.action))
        check_memory(TrainingConfig(model=config.model), spec, is_named=True)
        settings = with_known_layout(config.model, config.env, trial.observation)
        model = make_model(trial.observation, trial.action, settings)
        return describe_inputs(model, trial.observation), sum(weight.numel() for weight in model.parameters())
    except ModelSpecError as error:
        trial.note(f"no model: {error}")
    except (MemoryError, RuntimeError) as error:  # such as that of torch's allocator
        trial.note(f"no model, as it takes too much memory: {' '.join(str(error).split())}")
    return "", 0
