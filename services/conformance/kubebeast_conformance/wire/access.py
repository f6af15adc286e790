"""TLS and tokens of the suite."""

from dataclasses import dataclass, field

import grpc

from kubebeast_common.access.tls_files import TlsFiles, read_pem

OPTIONS: list[tuple[str, int | str]] = [
    ("grpc.max_send_message_length", -1),
    ("grpc.max_receive_message_length", -1),
    ("grpc.per_message_decompression", 0),
    ("grpc.so_reuseport", 0),
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.enable_http_proxy", 0),
    ("grpc.http2.min_ping_interval_without_data_ms", 10_000),
]
"""Options of channels and servers, which let the suite receive all messages of a peer."""


@dataclass(frozen=True, slots=True)
class Access:
    """Paths of files and the server's name, as in the flags of the same names."""

    tls: TlsFiles = field(default_factory=TlsFiles)
    tls_server_name: str = ""
    token_file: str = ""

    def channel(self, address: str) -> grpc.Channel:
        """Returns a channel to the address. Raises TlsError."""
        every = list(OPTIONS)
        if self.tls_server_name:
            every.append(("grpc.ssl_target_name_override", self.tls_server_name))
        if not self.tls:
            return grpc.insecure_channel(address, every)
        pem = read_pem(self.tls)
        return grpc.secure_channel(address, grpc.ssl_channel_credentials(pem.ca, pem.key, pem.cert), every)

    def listen(self, server: grpc.Server, address: str) -> int:
        """Adds the address to the server and returns the port. Raises TlsError, and RuntimeError if that fails."""
        if not self.tls.cert:
            return server.add_insecure_port(address)
        pem = read_pem(self.tls)
        pair = [(pem.key or b"", pem.cert or b"")]
        credentials = grpc.ssl_server_credentials(pair, pem.ca, require_client_auth=pem.ca is not None)
        return server.add_secure_port(address, credentials)
