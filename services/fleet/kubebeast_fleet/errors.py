"""What can go wrong beside wrong arguments."""


class FleetTimeoutError(TimeoutError):
    """No env-server played for so long that waiting on makes no sense; the message says who is there."""
