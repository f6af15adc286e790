"""Options of a fleet: access control, limits and timeouts."""

from collections.abc import Callable, Mapping
from typing import Any, TypedDict


class FleetOptions(TypedDict, total=False):
    """Keyword arguments of FleetVectorEnv and AsyncFleetVectorEnv. Files are reread while the fleet runs."""

    env_id: str
    """Id of the environment that determines the spaces; default: any. Others join if their spaces are equal."""
    fleet_timeout_s: float
    """Seconds without any row after which FleetTimeoutError is raised, also at the start; default 300."""
    step_timeout_s: float
    """Maximum seconds per step of an env-server, after which its environments are lost; default 60."""
    max_envs_per_stream: int
    """Maximum number of environments of a stream; default 1024. With 1, each environment steps by itself."""
    next_options: Callable[[], Mapping[str, Any]]
    """Returns the options of an episode that will begin soon, such as its level; called by a thread of the fleet, about
    one episode ahead. Episodes come back with them (`take_episodes`). Default: resets have no options."""
    tls_cert: str
    """PEM file of the own certificate and the intermediate certificates; default: no TLS."""
    tls_key: str
    """PEM file of the private key of tls_cert."""
    tls_ca: str
    """PEM file of the authorities that verify certificates of env-servers: mutual TLS."""
    token_file: str
    """File of bearer tokens, one per line, of which an env-server must send one; default: no token is required."""
    http_address: str
    """"host:port" of /healthz, /readyz and /metrics, unencrypted; port 0 picks a free port; default: no endpoint."""
