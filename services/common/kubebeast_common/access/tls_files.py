"""PEM files of certificates, keys and authorities, and whether they can be used."""

import ssl
from dataclasses import dataclass
from pathlib import Path


class TlsError(Exception):
    """A file that cannot be used, or a certificate and a key that do not belong together."""


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """Paths of PEM files; "" where there is none."""

    cert: str = ""
    """The own certificate, followed by those between it and the authority's."""
    key: str = ""
    """The private key of `cert`, not encrypted."""
    ca: str = ""
    """The authorities that the other side's certificate must descend from."""

    def __bool__(self) -> bool:
        return self != TlsFiles()


@dataclass(frozen=True, slots=True)
class Pem:
    """Contents of TlsFiles; None where there is no file."""

    cert: bytes | None
    key: bytes | None
    ca: bytes | None


def read_pem(files: TlsFiles) -> Pem:
    """The files' bytes, looked at by OpenSSL first: gRPC reports an unusable file on standard error only.

    Raises TlsError, which names the field and the file and shows nothing of what is in it.
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
