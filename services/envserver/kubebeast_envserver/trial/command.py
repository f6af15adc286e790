"""`kubebeast-envserver check`: tries an environment, and prints its leaves and problems."""

import json
from collections.abc import Sequence

from kubebeast_common.process.output import output_to_stderr
from kubebeast_common.settings import ConfigError
from kubebeast_common.spec.env_spec import describe
from kubebeast_envserver.envs.factory import resolve_config
from kubebeast_envserver.trial.settings import parse
from kubebeast_envserver.trial.tables import describe_trial
from kubebeast_envserver.trial.trial import try_env

EXIT_VIOLATIONS = 1


def run(arguments: Sequence[str]) -> int:
    """Runs the command. Returns the exit status, 1 for violations. Raises ConfigError if no environment can be made."""
    config = parse(arguments)
    with output_to_stderr():  # the output of environments is not the result
        try:
            made = resolve_config(config.env, **config.making)
        except ValueError as error:
            raise ConfigError(str(error)) from error
        trial = try_env(config)
    if config.json:
        print(json.dumps({"env": config.env, **made.to_plain(), **trial.to_plain()}))
    else:
        print("\n".join([describe(config.env, made), *describe_trial(trial, config.max_message_mib)]))
    return EXIT_VIOLATIONS if trial.violations else 0
