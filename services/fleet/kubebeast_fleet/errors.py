"""Errors of a fleet."""


class FleetTimeoutError(TimeoutError):
    """No row arrived from any env-server within fleet_timeout_s. The message has the number of environments."""
