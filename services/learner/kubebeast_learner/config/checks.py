"""What several settings must be."""

import json
from typing import Annotated, Any

from kubebeast_common.env_config import Wrapper
from kubebeast_common.env_config import parse_wrappers as parse
from kubebeast_common.settings import ConfigError as ConfigError
from kubebeast_common.settings import require as require
from kubebeast_common.settings import require_at_least as require_at_least
from kubebeast_common.settings import require_positive as require_positive

JsonObject = Annotated[str, "a JSON object; a mapping in a YAML file"]
"""The type of settings that parse_object reads."""
MAX_SEED = 2_000_000_000
"""Environments count up from a seed, and Atari's takes 31 bits."""


def require_seed(seed: int) -> None:
    """ConfigError for a seed that torch, numpy or an environment cannot take."""
    require(0 <= seed <= MAX_SEED, "seed", seed, f"must lie in [0, {MAX_SEED}]")


def parse_env_kwargs(text: str) -> dict[str, Any]:
    """The setting env_kwargs. ConfigError unless it is a JSON object."""
    return parse_object("env_kwargs", text)


def parse_object(name: str, text: str) -> dict[str, Any]:
    """The setting `name`. ConfigError unless it is a JSON object."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{name} = {text!r}: is no JSON: {error}") from error
    require(isinstance(value, dict), name, text, 'must be a JSON object such as {"size": 5}')
    parsed: dict[str, Any] = value
    return parsed


def parse_wrappers(text: str) -> tuple[Wrapper, ...]:
    """The setting wrappers. ConfigError unless it is a list of them."""
    try:
        return parse(text)
    except ValueError as error:
        raise ConfigError(f"wrappers = {text!r}: {error}") from error
