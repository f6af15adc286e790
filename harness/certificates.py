"""Certificates for tests of TLS: an authority and the certificates that it issues, as PEM files."""

import datetime
import ipaddress
from dataclasses import dataclass
from pathlib import Path

import grpc
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


@dataclass(frozen=True)
class Authority:
    """A certificate authority; `pem` is the file of its own certificate, for peers that trust it."""

    name: x509.Name
    key: ec.EllipticCurvePrivateKey
    pem: Path


@dataclass(frozen=True)
class Pair:
    """A certificate and its private key."""

    cert: Path
    key: Path

    def replace_by(self, other: "Pair") -> None:
        """Overwrites these files with the other pair."""
        self.cert.write_bytes(other.cert.read_bytes())
        self.key.write_bytes(other.key.read_bytes())


def make_ca(directory: Path, name: str = "authority") -> Authority:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    constraints = x509.BasicConstraints(ca=True, path_length=None)
    certificate = _builder(subject, subject, key).add_extension(constraints, critical=True).sign(key, hashes.SHA256())
    path = directory / f"{name}.pem"
    path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    return Authority(subject, key, path)


def issue(ca: Authority, directory: Path, name: str, host: str = "127.0.0.1") -> Pair:
    """Issues a certificate for one host: an IP address or a DNS name."""
    key = ec.generate_private_key(ec.SECP256R1())
    try:
        host_name: x509.GeneralName = x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        host_name = x509.DNSName(host)
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    certificate = (
        _builder(subject, ca.name, key)
        .add_extension(x509.SubjectAlternativeName([host_name]), critical=False)
        .sign(ca.key, hashes.SHA256())
    )
    pair = Pair(directory / f"{name}.crt", directory / f"{name}.key")
    pair.cert.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    pair.key.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return pair


def tls_options(pair: Pair | None = None, trusts: Authority | None = None) -> dict[str, str]:
    """Returns options of a pool or env-server that presents the pair and verifies its peer by the authority."""
    own = {"tls_cert": str(pair.cert), "tls_key": str(pair.key)} if pair is not None else {}
    return own | ({"tls_ca": str(trusts.pem)} if trusts is not None else {})


def listener_credentials(pair: Pair, client_ca: Authority | None = None) -> grpc.ServerCredentials:
    """Returns credentials of a listener that presents the pair, and requires a certificate of client_ca if given."""
    ca = client_ca.pem.read_bytes() if client_ca is not None else None
    chain = [(pair.key.read_bytes(), pair.cert.read_bytes())]
    return grpc.ssl_server_credentials(chain, ca, require_client_auth=ca is not None)


def dialer_credentials(ca: Authority, pair: Pair | None = None) -> grpc.ChannelCredentials:
    """Returns credentials of a dialer that trusts the authority, and presents the pair if given."""
    if pair is None:
        return grpc.ssl_channel_credentials(ca.pem.read_bytes())
    return grpc.ssl_channel_credentials(ca.pem.read_bytes(), pair.key.read_bytes(), pair.cert.read_bytes())


def _builder(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(minutes=5))
        .not_valid_after(now + datetime.timedelta(hours=1))
    )
