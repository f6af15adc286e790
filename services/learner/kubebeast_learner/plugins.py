"""Objects that users name on the command line, module:Name."""

import importlib
import sys
import traceback
from pathlib import Path
from typing import Any

import torch

from kubebeast_learner.config import ConfigError

_NOT_THE_USERS = (str(Path(torch.__file__).parent), str(Path(__file__).parent), "<frozen")


def load_object(setting: str, value: str) -> Any:
    """What `value`, "module:Name", names; modules are also found in the working directory, as `python -m` does.

    ConfigError names `setting` and `value` when there is no such module or name, or when importing it fails.
    """
    module_name, _, name = value.partition(":")
    folder = str(Path.cwd())
    if not {"", folder} & set(sys.path):
        sys.path.insert(0, folder)
    try:
        module = importlib.import_module(module_name)
    except Exception as error:  # a module's own code may raise anything
        if isinstance(error, ModuleNotFoundError) and error.name == module_name:
            reason = f"there is no module {module_name}, neither in {folder} nor installed"
        else:
            reason = f"importing {module_name} failed: {describe(error)}"
        raise ConfigError(f"{setting} = {value!r}: {reason}") from error
    try:
        return getattr(module, name)
    except AttributeError as error:
        raise ConfigError(f"{setting} = {value!r}: {module.__file__} has no {name}") from error


def describe(error: Exception) -> str:
    """An error of a user's code in one line: type, message, and the last line of it that is not torch's or ours."""
    text = f"{type(error).__name__}: {error}"
    frames = [
        frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith(_NOT_THE_USERS)
    ]
    return f"{text} ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else text
