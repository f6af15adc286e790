"""Settings of a training that are for others to see: no folders, addresses, tokens or trackers."""

import json
from collections.abc import Mapping
from typing import Any

from kubebeast_common.cli.settings import as_settings, setting_types
from kubebeast_learner.config import (
    LossConfig,
    ModelConfig,
    OptimizerConfig,
    PassesConfig,
    ReplayConfig,
    RolloutConfig,
    TasksConfig,
    TrainConfig,
)
from kubebeast_learner.run.state import Checkpoint
from kubebeast_observe.report.settings import Setting, compare

_SECTIONS = (RolloutConfig, TasksConfig, ModelConfig, LossConfig, OptimizerConfig, PassesConfig, ReplayConfig)
_ENVIRONMENT = ("env", "preset", "env_kwargs", "wrappers", "time_limit")
_RUN = ("total_steps", "schedule_steps", "seed", "num_actors", "lag")
PUBLIC = (*_ENVIRONMENT, *_RUN, *(name for section in _SECTIONS for name in setting_types(section)))
"""Names of settings. A new setting is not public until it is in one of these lists."""


def public_settings(checkpoint: Checkpoint) -> dict[str, Any]:
    """Returns the settings of a checkpoint that are PUBLIC, as `kubebeast train --config` takes them.

    The environment is that of the training, also if an env-server has named it.
    """
    config = {**checkpoint.config, "env": checkpoint.env_spec.env_id}
    made = checkpoint.env_spec.env_config
    if made is not None:
        config |= {"preset": made.preset, "env_kwargs": json.dumps(dict(made.kwargs)), "time_limit": made.time_limit}
        config["wrappers"] = json.dumps([wrapper.to_plain() for wrapper in made.wrappers])
    return {name: config[name] for name in PUBLIC if name in config}


def changed_settings(settings: Mapping[str, Any], meta: Mapping[str, Any]) -> list[Setting]:
    """Returns those of `settings` that differ from the defaults; `meta` is the content of the run's meta.json."""
    defaults = meta.get("defaults") or as_settings(TrainConfig())
    compared = compare(settings, defaults, meta.get("recipe"))
    return [each for each in compared if each.origin and each.name not in _ENVIRONMENT]
