"""Facts of a run beside its settings, for meta.json: hardware, versions, and where its settings are from."""

from typing import Any

from kubebeast_common.cli.settings import as_settings
from kubebeast_learner.config import TrainingConfig
from kubebeast_learner.config.recipes import choose_recipe
from kubebeast_learner.machine.versions import describe_hardware, describe_versions


def describe_run(config: TrainingConfig) -> dict[str, Any]:
    """Returns plain values: `hardware`, `versions`, `defaults` of the command, and `recipe` of the environment."""
    env_id = str(as_settings(config).get("env", ""))
    return {
        "hardware": describe_hardware(),
        "versions": describe_versions(),
        "defaults": as_settings(type(config)()),
        "recipe": _recipe(env_id),
    }


def _recipe(env_id: str) -> dict[str, Any] | None:
    recipe = choose_recipe("auto", env_id)
    if recipe is None:
        return None
    plain = {name: list(value) if isinstance(value, tuple) else value for name, value in recipe.settings.items()}
    return {"name": recipe.name, "settings": plain}
