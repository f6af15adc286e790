"""What carries the streams that an env-server dials: kubebeast-native where it is installed, else grpcio."""

import logging
from contextlib import AbstractContextManager
from typing import Literal

from kubebeast_common.access.tls_files import TlsFiles
from kubebeast_common.settings import ConfigError
from kubebeast_envserver.config import TransportName
from kubebeast_envserver.stream.connection import Stream

logger = logging.getLogger(__name__)


def choose_transport(wanted: TransportName) -> Literal["native", "grpcio"]:
    """Raises ConfigError where kubebeast-native is wanted and cannot be used."""
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
) -> AbstractContextManager[Stream]:
    """A stream to the learner at `address`, on a connection of its own; cancelled at the end of the context.

    Each call reads the files and resolves the learner's name. Raises ConfigError as choose_transport does, and, when
    the context is entered, TlsError or TokenFileError; that the learner cannot be reached shows where it is received.
    """
    if choose_transport(transport) == "native":
        from kubebeast_envserver.stream import native_stream

        return native_stream.open_stream(address, tls, tls_server_name, token_file)
    from kubebeast_envserver.stream import grpcio_stream

    return grpcio_stream.open_stream(address, tls, tls_server_name, token_file)
