"""Settings of the native pool: batching, limits, addresses and access."""

import math
import re
from dataclasses import dataclass
from pathlib import Path

from kubebeast_common.access.addresses import is_host_port, is_host_ports
from kubebeast_learner.config.checks import require, require_at_least, require_positive

DEFAULT_ADDRESS = "127.0.0.1:4431"
MAX_WEIGHT = 1e6
"""Largest broker_weight, as in broker.proto."""
_URL = re.compile(r"https?://[^\s/?#]+(/[^\s?#]*)?")


@dataclass(frozen=True, kw_only=True, slots=True)
class PoolConfig:
    """Native pool that env-servers dial, or that dials them."""

    max_learner_queue_size: int = 0
    """Most unrolls that may be in progress or wait for the learner; it bounds the age of the data. 0 means one for each
    environment and two batches, at most 8 batches. A full queue blocks env-servers, which continue in turn; each of
    several tasks has its own part of it."""
    max_policy_lag: int = 0
    """Largest age of an unroll's first weights, in updates; older unrolls are dropped and counted. 0 keeps all."""
    min_partial_steps: int = 1
    """Fewest transitions of an unfinished unroll; shorter ones are dropped when their stream ends."""
    inference_device: str = "auto"
    """Device of the model for the env-servers: auto is the device of the learner; several, separated by commas, share
    the rows. Each of N learners of one machine takes every N-th of them."""
    num_inference_threads: int = 1
    """Threads that run the model for the env-servers, per device."""
    min_inference_rows: int = 1
    """Rows that an inference batch waits for, for at most inference_timeout_ms."""
    max_inference_rows: int = 256
    """Most rows in an inference batch."""
    inference_timeout_ms: int = 10
    """Longest time that the oldest row waits for min_inference_rows, in milliseconds."""
    address: str = DEFAULT_ADDRESS
    """Address on which the learner listens: "host:port" or "unix:/path". Empty, in `kubebeast train`: a private unix
    socket."""
    dial: str = ""
    """Listening env-servers that the learner dials: "host:port" or "host:first-last", separated by commas. With it, the
    learner listens only if address is not the default."""
    tls_cert: Path | None = None
    """Certificate of the learner and its chain, PEM. Reloaded during the run, like the other files here."""
    tls_key: Path | None = None
    """Private key of tls_cert, PEM."""
    tls_ca: Path | None = None
    """Certificate authorities of the env-servers, PEM. If tls_cert is set, env-servers that dial in need a certificate
    of them; env-servers that are dialed need one in any case."""
    token_file: Path | None = None
    """Bearer tokens, one per line: an env-server needs any of them to dial in; the first is sent to those that are
    dialed."""
    http_address: str = ""
    """Address of /healthz, /readyz and /metrics, "host:port"; empty disables them."""
    trace_endpoint: str = ""
    """Base URL of an OpenTelemetry collector, e.g. "http://collector:4318", for traces of sampled steps; empty disables
    tracing."""
    trace_interval_s: float = 1.0
    """Time between two traced steps, in seconds."""
    linger: bool = False
    """After the last step, stay healthy and idle until SIGTERM. Supervisors that restart every ended process, such as
    Kubernetes, would otherwise start the finished run again and again."""
    linger_s: float | None = None
    """End of linger, in seconds after the last step, with status 0: Prometheus reads the last values meanwhile. None
    has no end."""
    max_offences: int = 20
    """Most offenses of a host: streams with malformed messages, without a token or without a Hello, and connections
    without a stream or with more bytes or calls than a stream needs. Above it, further connections of the host wait and
    are admitted slowly. One offense is forgiven every 3 s; 0 disables the limit."""
    max_streams: int = 4096
    """Most env-server streams at a time."""
    max_envs: int = 16384
    """Most environments at a time."""
    max_envs_per_stream: int = 1024
    """Most environments of one stream."""
    max_message_mib: int = 64
    """Largest message accepted from an env-server, in MiB."""
    handshake_timeout_s: float = 10.0
    """Longest time that a new stream may take for its handshake, in seconds."""
    step_timeout_s: float = 60.0
    """Longest time that a stream may take to step its environments, in seconds; then it is closed."""

    def __post_init__(self) -> None:
        names = ("num_inference_threads", "min_inference_rows", "max_envs_per_stream", "max_message_mib")
        require_at_least(1, self, *names)
        rows, reason = self.max_inference_rows, f"must be at least min_inference_rows ({self.min_inference_rows})"
        require(rows >= self.min_inference_rows, "max_inference_rows", rows, reason)
        require_at_least(0, self, "max_policy_lag", "max_offences")
        require_positive(self, "trace_interval_s", "linger_s")
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
        """Parts of `inference_device`; empty if it is auto."""
        if self.inference_device == "auto":
            return ()
        return tuple(name.strip() for name in self.inference_device.split(","))

    @property
    def dial_targets(self) -> tuple[str, ...]:
        """Parts of `dial`, each "host:port" or "host:first-last"."""
        return tuple(target.strip() for target in self.dial.split(",")) if self.dial else ()

    @property
    def longest_linger_s(self) -> float:
        """Longest wait after the last step, in seconds: 0 without `linger`, infinity without an end."""
        return (self.linger_s or math.inf) if self.linger else 0.0

    @property
    def listen_address(self) -> str:
        """Address on which the learner listens; empty if it only dials."""
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
            reason = "needs tls_ca too, to verify those that are dialed"
            require(cert is None or ca is not None, "tls_cert", cert, reason)
        if self.listen_address or not self.dial:
            require(ca is None or cert is not None, "tls_ca", ca, "needs tls_cert and tls_key too, to listen with TLS")


@dataclass(frozen=True, kw_only=True, slots=True)
class SharingConfig:
    """Registration at a broker, which shares one fleet of env-servers among many runs."""

    broker: str = ""
    """Address of `kubebeast broker`, "host:port"; empty: env-servers find the learner on their own. The token and the
    certificate of the learner are used for the broker, too."""
    broker_tls_ca: Path | None = None
    """Certificate authorities of the broker, PEM. Empty: those of tls_ca; without either, the broker is dialed without
    TLS."""
    broker_weight: float = 1.0
    """Share of the fleet, in relation to the weights of other runs. Several learners of the run divide it."""
    advertise_address: str = ""
    """Address that the broker gives to env-servers, "host:port"; ":port" is the host from which the learner dials the
    broker. Empty: that of address, without the host if it is every address of the machine."""

    def __post_init__(self) -> None:
        require(not self.broker or is_host_port(self.broker), "broker", self.broker, 'must be "host:port"')
        ca = expanded(self.broker_tls_ca)
        require(not ca or self.broker != "", "broker_tls_ca", ca, "needs broker too")
        reason = f"must be above 0, at most {MAX_WEIGHT:g}"
        require(0 < self.broker_weight <= MAX_WEIGHT, "broker_weight", self.broker_weight, reason)
        if address := self.advertise_address:
            is_address = is_host_port(address if address[0] != ":" else f"host{address}")
            require(is_address, "advertise_address", address, 'must be "host:port" or ":port"')


def expanded(path: Path | None) -> str:
    """Returns a path as text, with the home folder for ~; "" for None."""
    return "" if path is None else str(path.expanduser())
