"""Trackers show the runs of a sweep together: each service has an option for that."""

import json
from collections.abc import Mapping
from typing import Any

GROUPS = {"wandb": "group", "mlflow": "experiment", "trackio": "project"}
"""Option of each service that takes the name of the sweep, unless it is set."""


def grouped(settings: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Returns the settings of a run with the name of its sweep as the group of its trackers."""
    trackers, given = settings.get("tracker", ()), settings.get("tracker_options", {})
    try:
        options = json.loads(given) if isinstance(given, str) else given
        used = [service for service in GROUPS if service in trackers]
        named = {service: {GROUPS[service]: name, **options.get(service, {})} for service in used}
    except (ValueError, AttributeError, TypeError):  # the run refuses them with a message
        return dict(settings)
    return {**settings, "tracker_options": {**options, **named}} if named else dict(settings)
