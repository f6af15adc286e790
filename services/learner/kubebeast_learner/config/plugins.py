"""Import of user-defined objects, module:Name."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from kubebeast_common.user_code import UserImportError, import_user_object
from kubebeast_common.user_code import describe as describe
from kubebeast_learner.config import ConfigError
from kubebeast_learner.config.checks import parse_object


def load_object(setting: str, value: str) -> Any:
    """Imports the object `value`, "module:Name"; modules are also found in the working directory, as in `python -m`.

    Raises ConfigError with `setting` and `value` if there is no such module or name, or if its import fails.
    """
    try:
        return import_user_object(value)
    except UserImportError as error:
        raise ConfigError(f"{setting} = {value!r}: {error}") from error


def load_classes(setting: str, names: Sequence[str], options: str) -> list[tuple[str, Callable[[Path], Any]]]:
    """Imports the classes that `setting` names, module:Class each, for one object of a run each.

    Args:
        setting: the setting; that of the options has the same name with "_options".
        names: its value.
        options: JSON object with the arguments of the classes by their names.

    Returns:
        Each name, and a function from the folder of a run to the object, which may raise anything.

    Raises:
        ConfigError: If a class cannot be imported or does not take its options.
    """
    given = parse_object(f"{setting}_options", options)
    found: list[tuple[str, Callable[[Path], Any]]] = []
    for name in names:
        made = load_object(setting, name)
        if not callable(made):
            raise ConfigError(f"{setting} = {name!r}: must be a class, it is {made!r}")
        check_options(f"{setting}_options", options, made, 1, given.get(name, {}))
        found.append((name, partial(made, **given.get(name, {}))))
    return found


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
