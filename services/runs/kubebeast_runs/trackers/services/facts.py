"""Facts of meta.json that go to services beside the settings."""

import json
from collections.abc import Mapping
from typing import Any

_FACTS = ("versions", "hardware", "git", "slurm", "recipe", "date_start", "num_crashes")
FIRST_CHARTS = ("charts/mean_episode_return", "charts/sps", "losses/total_loss", "policy/entropy")
"""Tags of the charts to look at first."""


def facts_of(meta: Mapping[str, Any]) -> dict[str, Any]:
    """Returns plain values: versions, hardware, git commit, SLURM job, name of the recipe, start, and crashes."""
    facts = {name: meta[name] for name in _FACTS if meta.get(name) is not None}
    if "recipe" in facts:
        facts["recipe"] = facts["recipe"]["name"]
    return facts


def flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """Returns the leaves of nested mappings as text, by dotted names; other values than texts as JSON."""
    leaves: dict[str, str] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            leaves |= flat(value, f"{prefix}{name}.")
        else:
            leaves[prefix + name] = value if isinstance(value, str) else json.dumps(value)
    return leaves
