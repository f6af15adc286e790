"""The native pool: how it batches, what it bounds, where it meets env-servers and whom it lets in."""

import re
from dataclasses import dataclass
from pathlib import Path

from kubebeast_common.access.addresses import is_host_port, is_host_ports
from kubebeast_learner.config.checks import require, require_at_least, require_positive

DEFAULT_ADDRESS = "127.0.0.1:4431"
_URL = re.compile(r"https?://[^\s/?#]+(/[^\s?#]*)?")


@dataclass(frozen=True, kw_only=True, slots=True)
class PoolConfig:
    """The native pool that env-servers dial, or that dials them."""

    max_learner_queue_size: int = 0
    """Unrolls that may be played or wait for the learner; it bounds how old data are. 0 means one for each environment
    and two batches, at most 8 batches. A full queue holds env-servers back, who go on in turn; of several tasks each
    has its part of it."""
    max_policy_lag: int = 0
    """Unrolls that began with weights more than so many updates old are dropped and counted; 0 keeps all."""
    min_partial_steps: int = 1
    """A stream's started unroll with fewer transitions than this is dropped when the stream ends."""
    inference_device: str = "auto"
    """Where the model runs for the env-servers: auto is where the learner computes; several, separated by commas, share
    the rows. Learners of one machine take every second, third, ... of them."""
    num_inference_threads: int = 1
    """Threads that run the model for the env-servers, on each device."""
    min_inference_rows: int = 1
    """Rows an inference batch waits for, at most inference_timeout_ms long."""
    max_inference_rows: int = 256
    """Most rows in an inference batch."""
    inference_timeout_ms: int = 10
    """How long the oldest row waits for min_inference_rows, in milliseconds."""
    address: str = DEFAULT_ADDRESS
    """Where the learner listens: "host:port" or "unix:/path". Empty, in `kubebeast train`: a private unix socket."""
    dial: str = ""
    """Env-servers that listen, for the learner to dial: "host:port" or "host:first-last", separated by commas. With it
    the learner listens only where another address than the default is given."""
    tls_cert: Path | None = None
    """Certificate of the learner and its chain, PEM. Read again while the run goes on, as the other files here."""
    tls_key: Path | None = None
    """Private key of tls_cert, PEM."""
    tls_ca: Path | None = None
    """Authorities that env-servers' certificates must descend from, PEM: demanded from all who dial in, where tls_cert
    is given, and from all that are dialled."""
    token_file: Path | None = None
    """Bearer tokens, one a line: an env-server needs any of them to dial in, the first is shown to those dialled."""
    http_address: str = ""
    """Where /healthz, /readyz and /metrics are served, "host:port"; empty serves nothing."""
    trace_endpoint: str = ""
    """Base URL of an OpenTelemetry collector, e.g. "http://collector:4318", for traces of sampled steps; empty traces
    none."""
    trace_interval_s: float = 1.0
    """Time between two steps that are traced, in seconds."""
    linger: bool = False
    """After the last step stay, healthy and idle, until SIGTERM: what restarts whatever ends, as Kubernetes does, would
    start the finished run again and again."""
    max_offences: int = 20
    """Streams with malformed messages, without a token or without a Hello that a host may have: with more its further
    connections are closed at once. One is forgiven every 3 s; 0: no bound."""
    max_streams: int = 4096
    """Most env-server streams at a time."""
    max_envs: int = 16384
    """Most environments at a time."""
    max_envs_per_stream: int = 1024
    """Most environments of one stream."""
    max_message_mib: int = 64
    """Largest message accepted from an env-server, in MiB."""
    handshake_timeout_s: float = 10.0
    """How long a new stream may take to introduce itself, in seconds."""
    step_timeout_s: float = 60.0
    """How long a stream may take to step its environments before it is closed, in seconds."""

    def __post_init__(self) -> None:
        names = ("num_inference_threads", "min_inference_rows", "max_envs_per_stream", "max_message_mib")
        require_at_least(1, self, *names)
        rows, reason = self.max_inference_rows, f"must be at least min_inference_rows ({self.min_inference_rows})"
        require(rows >= self.min_inference_rows, "max_inference_rows", rows, reason)
        require_at_least(0, self, "max_policy_lag", "max_offences")
        require_positive(self, "trace_interval_s")
        self._check_inference_device()
        if self.http_address:
            require(is_host_port(self.http_address), "http_address", self.http_address, 'must be "host:port"')
        if self.trace_endpoint:
            is_url = _URL.fullmatch(self.trace_endpoint) is not None
            require(is_url, "trace_endpoint", self.trace_endpoint, "must be http://host:port or https://host:port")
        if self.dial:
            for target in self.dial_targets:
                require(is_host_ports(target), "dial", target, 'must be "host:port" or "host:first-last"')
        self._check_tls()

    @property
    def inference_devices(self) -> tuple[str, ...]:
        """The parts of `inference_device`; none where it is auto."""
        if self.inference_device == "auto":
            return ()
        return tuple(name.strip() for name in self.inference_device.split(","))

    @property
    def dial_targets(self) -> tuple[str, ...]:
        """The parts of `dial`, each "host:port" or "host:first-last"."""
        return tuple(target.strip() for target in self.dial.split(",")) if self.dial else ()

    @property
    def listen_address(self) -> str:
        """Where the learner listens; empty where it only dials."""
        return "" if self.dial and self.address == DEFAULT_ADDRESS else self.address

    def _check_inference_device(self) -> None:
        names = self.inference_devices
        are_devices = all(name not in ("", "auto") for name in names)
        reason = 'must be auto, or devices such as "cuda:0" or "cuda:0,cuda:1"'
        require(are_devices, "inference_device", self.inference_device, reason)
        reason = "names a device twice; several threads on one are num_inference_threads"
        require(len(set(names)) == len(names), "inference_device", self.inference_device, reason)

    def _check_tls(self) -> None:
        cert, key, ca = (None if path is None else str(path) for path in (self.tls_cert, self.tls_key, self.tls_ca))
        require(cert is None or key is not None, "tls_cert", cert, "needs tls_key too")
        require(key is None or cert is not None, "tls_key", key, "needs tls_cert too")
        if self.dial:
            reason = "needs tls_ca too, to verify those that are dialled"
            require(cert is None or ca is not None, "tls_cert", cert, reason)
        if self.listen_address or not self.dial:
            require(ca is None or cert is not None, "tls_ca", ca, "needs tls_cert and tls_key too, to listen with TLS")


def expanded(path: Path | None) -> str:
    """A path as text, with the home folder for ~; "" for None."""
    return "" if path is None else str(path.expanduser())
