"""Vector environments of a fleet of env-servers, which dial in and may leave at any time."""

from kubebeast_fleet.async_vector_env import AsyncFleetVectorEnv
from kubebeast_fleet.errors import FleetTimeoutError
from kubebeast_fleet.options import FleetOptions
from kubebeast_fleet.vector_env import FleetVectorEnv

__all__ = ["AsyncFleetVectorEnv", "FleetOptions", "FleetTimeoutError", "FleetVectorEnv"]
