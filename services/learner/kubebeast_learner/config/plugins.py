"""Objects that users name on the command line, module:Name."""

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
