"""TLS from PEM files, read again for each handshake: a certificate is replaced by replacing its files."""

import logging

import grpc

from kubebeast_common.access.tls_files import TlsError, TlsFiles, read_pem

logger = logging.getLogger(__name__)


def channel_credentials(files: TlsFiles) -> grpc.ChannelCredentials:
    """Returns the credentials of a dialer: they verify the listener, and contain a certificate if it has one.

    Raises TlsError.
    """
    pem = read_pem(files)
    return grpc.ssl_channel_credentials(pem.ca, pem.key, pem.cert)


def server_credentials(files: TlsFiles) -> grpc.ServerCredentials:
    """Returns the credentials of a listener; with `files.ca`, it also demands a certificate. Raises TlsError.

    Files that do not fit together, as in the middle of their replacement, are logged and leave the former ones in use.
    """

    def latest() -> grpc.ServerCertificateConfiguration | None:
        try:
            return _certificate_configuration(files)
        except TlsError as error:
            logger.warning("the former certificate stays in use: %s", error)
            return None

    return grpc.dynamic_ssl_server_credentials(
        _certificate_configuration(files),
        latest,  # type: ignore[arg-type] # None is "no change", which the stubs do not know
        require_client_authentication=files.ca != "",
    )


def _certificate_configuration(files: TlsFiles) -> grpc.ServerCertificateConfiguration:
    pem = read_pem(files)
    if pem.key is None or pem.cert is None:
        raise TlsError("a listener with TLS needs tls_cert and tls_key")
    return grpc.ssl_server_certificate_configuration([(pem.key, pem.cert)], pem.ca)
