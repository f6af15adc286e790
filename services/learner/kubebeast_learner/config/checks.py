"""Types and checks that several settings share."""

import json
import re
from typing import Annotated, Any

from kubebeast_common.env_config import Wrapper
from kubebeast_common.env_config import parse_wrappers as parse
from kubebeast_common.settings import ConfigError as ConfigError
from kubebeast_common.settings import require as require
from kubebeast_common.settings import require_at_least as require_at_least
from kubebeast_common.settings import require_positive as require_positive

JsonObject = Annotated[str, "a JSON object; a mapping in a YAML file"]
"""Type of settings that `parse_object` parses."""
MAX_SEED = 2_000_000_000
"""Largest seed: environments count up from it, and Atari seeds have 31 bits."""
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
"""Scheme of a URL (RFC 3986, 3.1). One slash suffices, because Path collapses two."""


def require_seed(seed: int) -> None:
    """Raises ConfigError for a seed that torch, numpy or an environment cannot take."""
    require(0 <= seed <= MAX_SEED, "seed", seed, f"must lie in [0, {MAX_SEED}]")


def require_local(config: object, *names: str) -> None:
    """Raises ConfigError if a path is a URL, which would become a folder of that name. None is valid."""
    for name in names:
        value = getattr(config, name)
        is_url = value is not None and _URL.match(str(value)) is not None
        require(not is_url, name, str(value), "is a URL: only paths of mounted file systems can be read and written")


def parse_env_kwargs(text: str) -> dict[str, Any]:
    """Parses the setting env_kwargs. Raises ConfigError unless it is a JSON object."""
    return parse_object("env_kwargs", text)


def parse_object(name: str, text: str) -> dict[str, Any]:
    """Parses the setting `name`. Raises ConfigError unless it is a JSON object."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{name} = {text!r}: is no JSON: {error}") from error
    require(isinstance(value, dict), name, text, 'must be a JSON object such as {"size": 5}')
    parsed: dict[str, Any] = value
    return parsed


def parse_wrappers(text: str) -> tuple[Wrapper, ...]:
    """Parses the setting wrappers. Raises ConfigError unless it is a list of wrappers."""
    try:
        return parse(text)
    except ValueError as error:
        raise ConfigError(f"wrappers = {text!r}: {error}") from error
