"""Objects that users name on the command line, module:Name."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from kubebeast_common.user_code import UserImportError, import_user_object
from kubebeast_common.user_code import describe as describe
from kubebeast_learner.config import ConfigError


def load_object(setting: str, value: str) -> Any:
    """What `value`, "module:Name", names; modules are also found in the working directory, as `python -m` does.

    ConfigError names `setting` and `value` when there is no such module or name, or when importing it fails.
    """
    try:
        return import_user_object(value)
    except UserImportError as error:
        raise ConfigError(f"{setting} = {value!r}: {error}") from error


def check_options(
    setting: str, text: str, function: Callable[..., Any], num_arguments: int, options: Mapping[str, Any]
) -> None:
    """ConfigError unless `function` takes `options` by their names, after num_arguments that have no name.

    setting, text: what the options were given by. Whether it can do without options, its call tells.
    """
    if not options:
        return
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # of C code
        return
    try:
        signature.bind(*[None] * num_arguments, **options)
    except TypeError as error:
        name = getattr(function, "__name__", type(function).__name__)
        parameters = [each.replace(annotation=inspect.Parameter.empty) for each in signature.parameters.values()]
        raise ConfigError(f"{setting} = {text!r}: {name}{inspect.Signature(parameters)}: {error}") from error
