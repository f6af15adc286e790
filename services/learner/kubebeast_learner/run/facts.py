"""Facts of a run beside its settings, for meta.json: hardware, versions, and where its settings are from."""

from typing import Any

from kubebeast_common.cli.settings import as_settings
from kubebeast_learner.config import TrainingConfig
from kubebeast_learner.config.recipes import recipe_named
from kubebeast_learner.machine.versions import describe_hardware, describe_versions


def describe_run(config: TrainingConfig) -> dict[str, Any]:
    """Returns plain values: `hardware`, `versions`, `defaults` of the command, and its `recipe`."""
    return {
        "hardware": describe_hardware(),
        "versions": describe_versions(),
        "defaults": as_settings(type(config)()),
        "recipe": _recipe(config.recipe.name),
    }


def _recipe(name: str) -> dict[str, Any] | None:
    if not name:
        return None
    settings = recipe_named(name).settings
    return {"name": name, "settings": {k: list(v) if isinstance(v, tuple) else v for k, v in settings.items()}}
