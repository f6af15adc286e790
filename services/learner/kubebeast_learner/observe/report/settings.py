"""Settings of a run compared with the defaults and the recipe."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kubebeast_learner.config import ConfigError, LearnerConfig, MonoConfig, TrainConfig
from kubebeast_learner.config.recipes import choose_recipe
from kubebeast_learner.config.sources import as_settings

IDENTITY = ("xpid", "savedir")
"""Settings that identify the run instead of configuring it."""


@dataclass(frozen=True, slots=True)
class Setting:
    name: str
    value: Any
    default: Any
    """None if the default is unknown."""
    origin: str
    """Origin of a value other than the default; "" for the default itself, and if the origin is unknown."""


def compare(args: Mapping[str, Any]) -> list[Setting]:
    """Returns every setting by name. args: those of meta.json. For TorchBeast's runs the defaults are unknown."""
    defaults = _defaults(args)
    recipe_name, recipe = _recipe(args)
    settings = []
    for name in sorted(args.keys() - set(IDENTITY)):
        value, origin = args[name], ""
        if name in defaults and value != defaults[name]:
            from_recipe = name in recipe and value == recipe[name]
            origin = f"recipe {recipe_name}" if from_recipe else "set for this run"
        settings.append(Setting(name, value, defaults.get(name), origin))
    return settings


def shown(value: Any) -> str:
    """Formats a value as on the command line."""
    if isinstance(value, (list, tuple)):
        return " ".join(map(shown, value))
    return "none" if value is None or value == "" else str(value)


def _defaults(args: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the defaults of the command that made the run."""
    if "log_interval_s" not in args:
        return {}
    if "num_servers" in args:
        return as_settings(TrainConfig())
    return as_settings(MonoConfig()) if "num_actor_processes" in args else as_settings(LearnerConfig())


def _recipe(args: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Returns the name and settings of the recipe for the environment's id."""
    try:
        recipe = choose_recipe("auto", str(args.get("env", "")))
    except ConfigError:
        recipe = None
    if recipe is None:
        return "", {}
    plain = {name: list(value) if isinstance(value, tuple) else value for name, value in recipe.settings.items()}
    return recipe.name, plain
