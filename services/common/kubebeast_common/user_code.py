"""Code of users: modules found as `python -m` finds them, and their errors in one line."""

import importlib
import signal
import sys
import sysconfig
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any

from kubebeast_common.text import printable

_LIBRARIES = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")})
_MAX_MESSAGE = 1000
"""Characters that are kept of an error's text: some texts hold whole arrays."""
_FRAMEWORK = {"gymnasium", "torch", "kubebeast_common", "kubebeast_envserver", "kubebeast_learner"}


class UserImportError(ImportError):
    """What cannot be imported; the message names it, the reason, and where it was looked for."""


def import_user_module(name: str) -> ModuleType:
    """The module, which is also found in the working directory. Raises UserImportError, whatever its code raises."""
    folder = str(Path.cwd())
    if not {"", folder} & set(sys.path):
        sys.path.insert(0, folder)
    try:
        return importlib.import_module(name)
    except BaseException as error:  # SystemExit comes from a script that reads its command line
        raise_if_interrupt(error)
        missing = error.name if isinstance(error, ModuleNotFoundError) else None
        if missing is not None and f"{name}.".startswith(f"{missing}."):
            raise UserImportError(f"there is no module {missing}, neither in {folder} nor installed") from error
        raise UserImportError(f"importing {name} failed: {describe(error)}") from error


def import_user_object(place: str) -> Any:
    """What `place`, "module:Name", names. Raises UserImportError."""
    module_name, _, name = place.partition(":")
    module = import_user_module(module_name)
    try:
        return getattr(module, name)
    except AttributeError as error:
        raise UserImportError(f"{getattr(module, '__file__', None) or module_name} has no {name}") from error
    except BaseException as error:  # a module may import what it names only when it is asked for
        raise_if_interrupt(error)
        raise UserImportError(f"importing {place} failed: {describe(error)}") from error


def raise_if_interrupt(error: BaseException) -> None:
    """Raises the error when it is that of Ctrl-C, which is not for the user's code.

    A process that handles or ignores SIGINT has no such error: there a KeyboardInterrupt is the code's own.
    """
    if isinstance(error, KeyboardInterrupt) and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        raise error


def message(error: BaseException) -> str:
    """The text of an error on one line of printable characters; of a long one the beginning."""
    try:
        text = " ".join(str(error).split())
    except BaseException as another:  # of a __str__ of the user's own
        raise_if_interrupt(another)
        return "(its text raised an error itself)"
    return printable(text, _MAX_MESSAGE) + ("..." if len(text) > _MAX_MESSAGE else "")


def describe(error: BaseException) -> str:
    """An error in one line: type, message, and the last line that is the user's own, else one of another library."""
    text = f"{type(error).__name__}: {message(error)}"
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not _is_framework(frame.filename)]
    own = [frame for frame in frames if not frame.filename.startswith(_LIBRARIES)]
    return f"{text} ({Path((own or frames)[-1].filename).name}, line {(own or frames)[-1].lineno})" if frames else text


def _is_framework(filename: str) -> bool:
    return filename.startswith("<") or not _FRAMEWORK.isdisjoint(Path(filename).parts)
