"""`kubebeast check-env`: `kubebeast-envserver check`, and the model that the environment gets."""

import json

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
from kubebeast_learner.training.sizes import check_memory


def run(config: CheckEnvConfig) -> int:
    """Runs the command. Returns the exit status, 1 for violations. Raises ConfigError if no environment can be made."""
    with output_to_stderr():  # the output of environments is not the result
        made, trial, model, num_parameters = check_env(config)
    if config.json:
        own = {"model": model, "num_parameters": num_parameters}
        print(json.dumps({"env": config.env, **made.to_plain(), **trial.to_plain(), **own}))
    else:
        text = f"{model}; {num_parameters:,} parameters" if model else ""
        lines = describe_trial(trial, config.max_message_mib, text)
        print("\n".join([describe(config.env, made), *lines]))
    return EXIT_VIOLATIONS if trial.violations else 0


def check_env(config: CheckEnvConfig) -> tuple[EnvConfig, Trial, str, int]:
    """Tries the environment and makes its model. Raises ConfigError if no environment can be made.

    Returns:
        The configuration of the environment, its trial, a description of the model's inputs, which is empty if there
        is no model, and the number of the model's parameters.
    """
    try:
        made = resolve_config(config.env, **config.making)
    except ValueError as error:
        raise ConfigError(str(error)) from error
    names = "env", "steps", "episodes", "seed", "max_message_mib"
    settings = TrialConfig(**{name: getattr(config, name) for name in names}, **config.making)
    with torch_state.of_environments():
        trial = try_env(settings)
    return made, trial, *_model_of(trial, config)


def _model_of(trial: Trial, config: CheckEnvConfig) -> tuple[str, int]:
    """Returns the inputs of the model and the number of its parameters; adds a violation if there is no model."""
    if not 0 < bytes_of_row(trial.observation, trial.action) <= config.max_message_mib << 20:
        return "", 0
    try:
        spec = EnvSpec(config.env, tuple(trial.observation), tuple(trial.action))
        check_memory(TrainingConfig(model=config.model), spec, is_named=True)
        model = make_model(trial.observation, trial.action, config.model)
        return describe_inputs(model, trial.observation), sum(weight.numel() for weight in model.parameters())
    except ModelSpecError as error:
        trial.note(f"no model: {error}")
    except (MemoryError, RuntimeError) as error:  # such as that of torch's allocator
        trial.note(f"no model, as it takes too much memory: {' '.join(str(error).split())}")
    return "", 0
