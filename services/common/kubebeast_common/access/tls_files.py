"""PEM files of certificates, keys and authorities, and their validation."""

import ssl
from dataclasses import dataclass
from pathlib import Path


class TlsError(Exception):
    """An unusable file, or a certificate and a key that do not match."""


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """Paths of PEM files; "" for none."""

    cert: str = ""
    """The own certificate, followed by the intermediate certificates."""
    key: str = ""
    """The unencrypted private key of `cert`."""
    ca: str = ""
    """The authorities that verify the certificate of the other side."""

    def __bool__(self) -> bool:
        return self != TlsFiles()


@dataclass(frozen=True, slots=True)
class Pem:
    """Contents of TlsFiles; None for no file."""

    cert: bytes | None
    key: bytes | None
    ca: bytes | None


def read_pem(files: TlsFiles) -> Pem:
    """Reads the files and validates them with OpenSSL, because gRPC reports an unusable file only on standard error.

    Raises TlsError with the names of field and file, but without the contents of the file.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    pair = f"tls_cert = {files.cert!r}, tls_key = {files.key!r}"
    try:
        cert, key = _bytes(files.cert), _bytes(files.key)
        if cert is not None:
            context.load_cert_chain(files.cert, files.key, password="")
    except (OSError, ValueError) as error:
        raise TlsError(f"{pair}: {_reason(error)}") from error
    try:
        ca = _bytes(files.ca)
        if ca is not None:
            context.load_verify_locations(files.ca)
    except (OSError, ValueError) as error:
        raise TlsError(f"tls_ca = {files.ca!r}: {_reason(error)}") from error
    return Pem(cert, key, ca)


def _bytes(path: str) -> bytes | None:
    return Path(path).read_bytes() if path else None


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)
