"""Users' code: import of their modules, also from the working directory, and one-line texts of their errors."""

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
_AT_IMPORT = ": a script that reads its command line does so beneath if __name__ == '__main__'"
_MAX_MESSAGE = 1000
"""Maximum number of characters of an error's text, which may contain whole arrays."""
_FRAMEWORK = {"gymnasium", "torch", "kubebeast_common", "kubebeast_envserver", "kubebeast_learner"}


class UserImportError(ImportError):
    """A module or object that cannot be imported. The message has its name, the reason and the searched folder."""


def import_user_module(name: str) -> ModuleType:
    """Imports a module, also from the working directory if no module of Python or installed module has its name.

    Raises UserImportError for any error of its code except Ctrl-C.
    """
    if name.startswith(".") or "/" in name or name.endswith(".py"):
        written = Path(name).name.removesuffix(".py").lstrip(".")
        raise UserImportError(f"{name!r} is no name of a module: the file {written}.py in this folder is {written}")
    folder = _working_directory()
    if not {"", folder} & set(sys.path):
        sys.path.append(folder)
    try:
        return importlib.import_module(name)
    except BaseException as error:  # SystemExit is raised by a script that reads its command line
        raise_if_interrupt(error)
        missing = error.name if isinstance(error, ModuleNotFoundError) else None
        if missing is not None and f"{name}.".startswith(f"{missing}."):
            reason = f"there is no module {missing}, neither in {folder} nor installed"
            raise UserImportError(f"{reason}{shadow_hint(name)}") from error
        hint = _AT_IMPORT if isinstance(error, SystemExit) else shadow_hint(name)
        raise UserImportError(f"importing {name} failed: {describe(error)}{hint}") from error


def shadow_hint(module: str, error: BaseException | None = None) -> str:
    """Returns a hint for the text of an error about a module, if a file of its name in the working directory was not
    imported because another module of this name was; "" otherwise, and for a UserImportError, which already contains
    the hint.
    """
    name = module.partition(".")[0]
    if not name or isinstance(error, UserImportError):
        return ""
    folder = Path(_working_directory())
    files = [path for path in (folder / f"{name}.py", folder / name) if path.suffix == ".py" or path.is_dir()]
    own = next((path for path in files if path.exists()), None)
    used = sys.modules.get(name)
    if own is None or used is None:
        return ""
    origin = getattr(used, "__file__", None) or next(iter(getattr(used, "__path__", ())), "built into Python")
    if Path(origin).is_relative_to(folder / name) or Path(origin) == own:
        return ""
    return f"; the module {name} is {origin}, not {own}: give yours another name"


def _working_directory() -> str:
    """Returns the working directory; "" if it was deleted."""
    try:
        return str(Path.cwd())
    except OSError:
        return ""


def import_user_object(place: str) -> Any:
    """Imports the object at `place`, "module:Name". Raises UserImportError."""
    module_name, _, name = place.partition(":")
    module = import_user_module(module_name)
    try:
        return getattr(module, name)
    except AttributeError as error:
        where = getattr(module, "__file__", None) or module_name
        raise UserImportError(f"{where} has no {name}{shadow_hint(module_name)}") from error
    except BaseException as error:  # a module may import its objects lazily
        raise_if_interrupt(error)
        raise UserImportError(f"importing {place} failed: {describe(error)}") from error


def raise_if_interrupt(error: BaseException) -> None:
    """Raises the error again if Ctrl-C caused it, as it is not an error of the user's code.

    If the process handles or ignores SIGINT, the user's code has raised KeyboardInterrupt itself.
    """
    if isinstance(error, KeyboardInterrupt) and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        raise error


def message(error: BaseException) -> str:
    """Returns the text of an error in one line of printable characters, cut off after _MAX_MESSAGE."""
    try:
        text = " ".join(str(error).split())
    except BaseException as another:  # raised by a __str__ of the user's code
        raise_if_interrupt(another)
        return "(its text raised an error itself)"
    return printable(text, _MAX_MESSAGE) + ("..." if len(text) > _MAX_MESSAGE else "")


def describe(error: BaseException) -> str:
    """Returns an error in one line: type, message, and the last line in the user's code, or else in a library."""
    text = f"{type(error).__name__}: {message(error)}"
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not _is_framework(frame.filename)]
    own = [frame for frame in frames if not frame.filename.startswith(_LIBRARIES)]
    return f"{text} ({Path((own or frames)[-1].filename).name}, line {(own or frames)[-1].lineno})" if frames else text


def _is_framework(filename: str) -> bool:
    return filename.startswith("<") or not _FRAMEWORK.isdisjoint(Path(filename).parts)
