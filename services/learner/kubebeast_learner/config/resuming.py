"""Check of the settings of a resumed run."""

import json
from collections.abc import Mapping
from typing import Any

from kubebeast_common.ids.env_id import parse_env_id
from kubebeast_common.spec.env_config import parse_wrappers
from kubebeast_learner.config.checks import ConfigError
from kubebeast_learner.config.episodes.tasks import parse_task_shares
from kubebeast_runs.resuming import FIXED

_JSON = (
    "env_kwargs",
    "model_options",
    "encoder_options",
    "loss_options",
    "optimizer_options",
    "tracker_options",
    "callback_options",
    "curriculum_options",
)


def check_resume(wanted: Mapping[str, Any], saved: Mapping[str, Any], origin: str) -> None:
    """Raises ConfigError, which names every fixed setting that differs from the run's.

    An empty setting is not compared, except task_shares, for which it means one task. `wanted` and `saved` are flat
    plain settings, see sources.as_settings; `origin` is the source of `saved`, for the message.
    """
    changed = {
        name: change
        for name, change in changes(wanted, saved).items()
        if name in FIXED and (name == "task_shares" or "" not in change)
    }
    if not changed:
        return
    raise ConfigError(
        f"{_listed({name: value for name, (_, value) in changed.items()})}: {origin} was trained with "
        f"{_listed({name: value for name, (value, _) in changed.items()})}, which a resumed run keeps; "
        "use the saved values (config.yaml in its folder has every setting), or another xpid for a new run"
    )


def changes(wanted: Mapping[str, Any], saved: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Returns the settings in both that have different values, with the values in `saved` and in `wanted`."""
    return {
        name: (saved[name], value)
        for name, value in wanted.items()
        if name in saved and _meaning(name, saved[name]) != _meaning(name, value)
    }


def _meaning(name: str, value: Any) -> Any:
    """Returns a value that is equal for all notations of one setting."""
    try:
        if name in _JSON:
            return json.loads(value)
        if name == "env":
            return parse_env_id(value).plain
        if name == "task_shares":
            return [parse_env_id(task).plain for task in parse_task_shares(value)]
        return parse_wrappers(value) if name == "wrappers" else value
    except (ConfigError, ValueError):  # empty in runs without this setting
        return value


def _listed(settings: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} = {value!r}" for name, value in settings.items())
