"""Types and checks that several settings share."""

from typing import Any

from kubebeast_common.cli.settings import JsonObject as JsonObject
from kubebeast_common.settings import ConfigError as ConfigError
from kubebeast_common.settings import parse_json
from kubebeast_common.settings import require as require
from kubebeast_common.settings import require_at_least as require_at_least
from kubebeast_common.settings import require_local as require_local
from kubebeast_common.settings import require_positive as require_positive
from kubebeast_common.spec.env_config import Wrapper
from kubebeast_common.spec.env_config import parse_wrappers as parse
from kubebeast_runs.parts import NAME_RULE, is_evaluator

MAX_SEED = 2_000_000_000
"""Largest seed: environments count up from it, and Atari seeds have 31 bits."""


def require_seed(seed: int) -> None:
    """Raises ConfigError for a seed that torch, numpy or an environment cannot take."""
    require(0 <= seed <= MAX_SEED, "seed", seed, f"must lie in [0, {MAX_SEED}]")


def require_evaluator(setting: str, name: str) -> None:
    """Raises ConfigError unless an evaluator may have this name; "" is none."""
    require(not name or is_evaluator(name), setting, name, NAME_RULE)


def parse_env_kwargs(text: str) -> dict[str, Any]:
    """Parses the setting env_kwargs. Raises ConfigError unless it is a JSON object."""
    return parse_object("env_kwargs", text)


def parse_object(name: str, text: str) -> dict[str, Any]:
    """Parses the setting `name`. Raises ConfigError unless it is a JSON object."""
    try:
        value = parse_json(text)
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


def require_classes(setting: str, names: tuple[str, ...], options: str, *built_in: str) -> None:
    """Raises ConfigError unless `names`, the value of the setting, are module:Class or built in, and the JSON `options`
    of setting_options have one object for each of some of them.
    """
    kinds = ", ".join([*built_in, "module:Class"])
    for name in names:
        require(":" in name or name in built_in, setting, name, f"must be {kinds}")
    for name, of_class in parse_object(f"{setting}_options", options).items():
        require(name in names, f"{setting}_options", name, f"{setting} does not name it")
        require(isinstance(of_class, dict), f"{setting}_options", of_class, f"must be a JSON object, that of {name}")
