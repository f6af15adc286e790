"""Import of user-defined objects, module:Name."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from kubebeast_common.user_code import UserImportError, import_user_object
from kubebeast_common.user_code import describe as describe
from kubebeast_learner.config import ConfigError


def load_object(setting: str, value: str) -> Any:
    """Imports the object `value`, "module:Name"; modules are also found in the working directory, as in `python -m`.

    Raises ConfigError with `setting` and `value` if there is no such module or name, or if its import fails.
    """
    try:
        return import_user_object(value)
    except UserImportError as error:
        raise ConfigError(f"{setting} = {value!r}: {error}") from error


def check_options(
    setting: str, text: str, function: Callable[..., Any], num_arguments: int, options: Mapping[str, Any]
) -> None:
    """Raises ConfigError unless `function` accepts `options` by name, after num_arguments positional arguments.

    `setting` and `text` are the source of the options. Empty options are not checked: the call fails if some are
    required.
    """
    if not options:
        return
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # C code without a signature
        return
    try:
        signature.bind(*[None] * num_arguments, **options)
    except TypeError as error:
        name = getattr(function, "__name__", type(function).__name__)
        parameters = [each.replace(annotation=inspect.Parameter.empty) for each in signature.parameters.values()]
        raise ConfigError(f"{setting} = {text!r}: {name}{inspect.Signature(parameters)}: {error}") from error
