"""The server of the calls."""

import grpc

from kubebeast_broker.service import Service
from kubebeast_broker.settings import BrokerConfig
from kubebeast_common.access.addresses import bindable
from kubebeast_common.access.grpc_tls import server_credentials
from kubebeast_common.access.tls_files import TlsError
from kubebeast_common.settings import ConfigError

MAX_MESSAGE_BYTES = 64 << 10
SPARE_CALLS = 64
"""Calls beyond the limits of registrations, to be refused with a reason."""

_OPTIONS: list[tuple[str, int]] = [
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
    ("grpc.per_message_decompression", 0),  # a few bytes could inflate to the limit above
    ("grpc.so_reuseport", 0),
    ("grpc.server_handshake_timeout_ms", 10_000),
    ("grpc.max_connection_idle_ms", 60_000),
    # A learner that is gone without the end of its connection, such as with its node, is noticed within 3 s.
    ("grpc.keepalive_time_ms", 1_000),
    ("grpc.keepalive_timeout_ms", 2_000),
    ("grpc.http2.ping_timeout_ms", 2_000),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.http2.min_ping_interval_without_data_ms", 5_000),
]


async def open_server(config: BrokerConfig, service: Service) -> tuple[grpc.aio.Server, int]:
    """Listens for calls; returns the server and its port. Raises ConfigError."""
    most = config.max_learners + config.max_streams + SPARE_CALLS
    server = grpc.aio.server(handlers=[service.handler()], options=_OPTIONS, maximum_concurrent_rpcs=most)
    address = bindable(config.address)
    try:
        if config.tls_cert is None:
            port = server.add_insecure_port(address)
        else:
            port = server.add_secure_port(address, server_credentials(config.tls_files))
    except TlsError as error:
        raise ConfigError(str(error)) from error
    except RuntimeError as error:
        reason = "in use, or no address of this machine"
        raise ConfigError(f"address = {config.address!r}: cannot be listened on: {reason}") from error
    await server.start()
    return server, port
