"""Settings of `kubebeast broker`."""

from dataclasses import dataclass
from pathlib import Path

from kubebeast_common.access.addresses import is_host_port
from kubebeast_common.access.tls_files import TlsFiles
from kubebeast_common.log import LogFormat, LogLevel
from kubebeast_common.settings import require, require_at_least

DEFAULT_ADDRESS = "127.0.0.1:4432"


@dataclass(frozen=True, kw_only=True, slots=True)
class BrokerConfig:
    """Settings of `kubebeast broker`."""

    address: str = DEFAULT_ADDRESS
    """Address on which the broker listens, "host:port"; "[::]:4432" is every address of the machine."""
    http_address: str = ""
    """Address of /healthz, /readyz, /metrics and /fleet, "host:port"; empty disables them."""
    tls_cert: Path | None = None
    """Certificate of the broker and its chain, PEM."""
    tls_key: Path | None = None
    """Private key of tls_cert, PEM."""
    tls_ca: Path | None = None
    """Certificate authorities of learners and env-servers, PEM: they need a certificate of them."""
    token_file: Path | None = None
    """Bearer tokens, one per line: learners and env-servers need any of them."""
    max_learners: int = 256
    """Most learners at a time."""
    max_streams: int = 16384
    """Most streams of env-servers at a time."""
    log_level: LogLevel = "info"
    """Least severe level that is logged."""
    log_format: LogFormat = "auto"
    """Format of the log: auto is text on a terminal and JSON lines elsewhere."""

    def __post_init__(self) -> None:
        for name in ("address", *(["http_address"] if self.http_address else [])):
            require(is_host_port(getattr(self, name)), name, getattr(self, name), 'must be "host:port"')
        require_at_least(1, self, "max_learners", "max_streams")
        files = self.tls_files
        require(not files.cert or files.key != "", "tls_cert", files.cert, "needs tls_key too")
        require(not files.key or files.cert != "", "tls_key", files.key, "needs tls_cert too")
        require(not files.ca or files.cert != "", "tls_ca", files.ca, "needs tls_cert and tls_key too")

    @property
    def tls_files(self) -> TlsFiles:
        return TlsFiles(*(_text(path) for path in (self.tls_cert, self.tls_key, self.tls_ca)))

    @property
    def token_path(self) -> str:
        return _text(self.token_file)


def _text(path: Path | None) -> str:
    return "" if path is None else str(path.expanduser())
