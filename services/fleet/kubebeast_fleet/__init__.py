"""A fleet of env-servers as a vector environment: they dial in, come and go; whoever trains steps what is there."""

from kubebeast_fleet.async_vector_env import AsyncFleetVectorEnv
from kubebeast_fleet.errors import FleetTimeoutError
from kubebeast_fleet.options import FleetOptions
from kubebeast_fleet.vector_env import FleetVectorEnv

__all__ = ["AsyncFleetVectorEnv", "FleetOptions", "FleetTimeoutError", "FleetVectorEnv"]
