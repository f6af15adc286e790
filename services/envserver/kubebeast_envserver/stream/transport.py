"""Transport of the streams that an env-server dials: kubebeast-native if it is installed, else grpcio."""

import logging
from contextlib import AbstractContextManager
from typing import Literal

from kubebeast_common.access.tls_files import TlsFiles
from kubebeast_common.settings import ConfigError
from kubebeast_envserver.config import TransportName
from kubebeast_envserver.stream.connection import Stream

logger = logging.getLogger(__name__)


def choose_transport(wanted: TransportName) -> Literal["native", "grpcio"]:
    """Returns the transport to use. Raises ConfigError if kubebeast-native is wanted but cannot be used."""
    if wanted == "grpcio":
        return "grpcio"
    try:
        from kubebeast_native import ActCall  # noqa: F401
    except ImportError as error:
        if wanted == "native":
            raise ConfigError(f"transport = 'native': kubebeast-native cannot be used: {error}") from error
        if not isinstance(error, ModuleNotFoundError):
            logger.warning("kubebeast-native is installed and cannot be used: %s", error)
        return "grpcio"
    return "native"


def open_stream(
    address: str,
    tls: TlsFiles | None = None,
    tls_server_name: str = "",
    token_file: str = "",
    transport: TransportName = "auto",
    use_proxy: bool | None = None,
) -> AbstractContextManager[Stream]:
    """Opens a stream to the learner at `address`, on a connection of its own; it is canceled at the end of the context.

    `use_proxy` is True if gRPC asks the HTTP proxy of the environment to connect; None follows may_need_proxy.

    Each call reads the files and resolves the learner's name. Raises ConfigError as choose_transport does, and, when
    the context is entered, TlsError or TokenFileError. An unreachable learner causes an error at the first receive.
    """
    if choose_transport(transport) == "native":
        from kubebeast_envserver.stream import native_stream

        return native_stream.open_stream(address, tls, tls_server_name, token_file, use_proxy)
    from kubebeast_envserver.stream import grpcio_stream

    return grpcio_stream.open_stream(address, tls, tls_server_name, token_file, use_proxy)
