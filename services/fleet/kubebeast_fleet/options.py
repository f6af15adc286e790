"""Who may join a fleet, and how long is waited for whom."""

from typing import TypedDict


class FleetOptions(TypedDict, total=False):
    """Keyword arguments of FleetVectorEnv and AsyncFleetVectorEnv. Files are read again while the fleet runs."""

    env_id: str
    """Environment of the env-server that decides the spaces; default: any. Others join where their spaces are equal."""
    fleet_timeout_s: float
    """Seconds without a single row after which FleetTimeoutError is raised, also of the first; default 300."""
    step_timeout_s: float
    """Seconds that an env-server may take for a step before its environments count as lost; default 60."""
    max_envs_per_stream: int
    """Streams of more environments are refused; default 1024. With 1, each environment steps by itself."""
    tls_cert: str
    """PEM file of the own certificate and those up to its authority; default: no TLS."""
    tls_key: str
    """PEM file of its private key."""
    tls_ca: str
    """PEM file of the authorities that an env-server's certificate must descend from: mutual TLS."""
    token_file: str
    """File of bearer tokens, one a line: an env-server must send one of them; default: none is asked for."""
    http_address: str
    """"host:port" of /healthz, /readyz and /metrics, unencrypted; port 0 picks one; default: none."""
