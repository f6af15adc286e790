"""Settings of a run compared with the defaults and the recipe, which meta.json has beside them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

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


def compare(
    args: Mapping[str, Any], defaults: Mapping[str, Any] | None = None, recipe: Mapping[str, Any] | None = None
) -> list[Setting]:
    """Returns every setting by name.

    Args:
        args: Settings of the run.
        defaults: Defaults of the command that trained; without them, as for TorchBeast's runs, no origin is known.
        recipe: `name` and `settings` of the recipe for the environment, if there is one.
    """
    defaults, recipe = defaults or {}, recipe or {}
    of_recipe = recipe.get("settings") or {}
    settings = []
    for name in sorted(args.keys() - set(IDENTITY)):
        value, origin = args[name], ""
        if name in defaults and value != defaults[name]:
            from_recipe = name in of_recipe and value == of_recipe[name]
            origin = f"recipe {recipe.get('name')}" if from_recipe else "set for this run"
        settings.append(Setting(name, value, defaults.get(name), origin))
    return settings


def shown(value: Any) -> str:
    """Formats a value as on the command line."""
    if isinstance(value, (list, tuple)):
        return " ".join(map(shown, value))
    return "none" if value is None or value == "" else str(value)
