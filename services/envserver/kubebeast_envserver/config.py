"""Settings of an env-server: defaults < YAML file < KUBEBEAST_* environment < flags."""

import argparse
import os
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, get_args

from kubebeast_common.access.addresses import MAX_PORT, absolute_socket, is_host_port, is_host_ports
from kubebeast_common.access.proxy import ProxyUse
from kubebeast_common.backoff import FaultPolicy
from kubebeast_common.log import LogFormat, LogLevel
from kubebeast_common.settings import ConfigError, require, require_at_least, require_positive
from kubebeast_common.spec.env_config import Wrapper
from kubebeast_common.spec.limits import MAX_ID_CHARACTERS, MAX_RUN_BYTES
from kubebeast_envserver.options import option, parse_options

Preset = Literal["auto", "none", "atari-v4", "atari-v5"]
CompressionName = Literal["lz4", "none"]
TransportName = Literal["auto", "native", "grpcio"]
_CHOICES = {
    "preset": Preset,
    "compression": CompressionName,
    "transport": TransportName,
    "use_proxy": ProxyUse,
    "log_level": LogLevel,
    "log_format": LogFormat,
}

DEFAULT_ADDRESS = "127.0.0.1:4431"
PATHS = ("tls_cert", "tls_key", "tls_ca", "token_file")
"""Settings that are paths. They are made absolute, as files are read again while environments run, and these may change
the working directory.
"""
UNIX, DNS, BROKER = "unix:", "dns:", "broker:"
"""Prefixes of an address: UNIX of the path of a socket, DNS of a name with a learner at each of its addresses, BROKER
of a broker, which assigns learners.
"""
MAX_SEED = 2**31 - 1
"""Largest seed: emulators take a C int."""


@dataclass(frozen=True, kw_only=True, slots=True)
class EnvServerConfig:
    """Configuration of `kubebeast-envserver`: each field is a flag, a KUBEBEAST_<FIELD> and a line of --config."""

    env: str = option("", "environment: a gymnasium id, module:Id, pettingzoo/..., an Atari id, or Mock")
    address: str = option(
        DEFAULT_ADDRESS,
        'the learner to dial: "host:port" or "unix:/path"; of several learners all, separated by commas, of which each '
        'stream takes one: also "host:first-last", and "dns:host:port" for every address of a name; or '
        '"broker:host:port": a broker that shares the env-servers among many runs',
    )
    run: str = option("", "the run (xpid) that this env-server serves; empty: any")
    listen: str = option("", '"host:port": wait for a learner that dials instead; stream i listens on port + i')
    num_streams: int = option(1, "streams to the learner; each steps its environments in a process of its own")
    envs_per_stream: int = option(
        16, "environments that step together on a stream; of several agents in one each counts"
    )
    preset: Preset = option("auto", "Atari preprocessing; auto: selected by the environment id")
    env_kwargs: dict[str, Any] = field(
        default_factory=dict, metadata={"help": "JSON object: arguments of the environment or overrides of the preset"}
    )
    wrappers: tuple[Wrapper, ...] = option(
        (),
        "put around each environment, in this order: module:Wrapper, separated by commas, or a JSON list in which "
        '{"module:Wrapper": {...}} has arguments',
    )
    time_limit: int = option(0, "steps after which an episode is truncated; 0: as the environment is registered")
    seed: int | None = option(None, "seed of the first environment, the next ones count up; default: random")
    env_server_id: str = field(
        default_factory=socket.gethostname,
        metadata={"help": "name of this env-server across restarts; default: host name"},
    )
    compression: CompressionName = option("lz4", "offered to the learner for uint8 leaves of 1 KiB and more")
    transport: TransportName = option(
        "auto", "transport of the streams that it dials; auto: kubebeast-native if installed, else grpcio"
    )
    use_proxy: ProxyUse = option(
        "auto",
        "dial through the HTTP proxy of grpc_proxy, https_proxy or http_proxy, unless no_proxy lists the learner; "
        "auto: not to this machine, nor to a Service of the cluster, NAME.NAMESPACE.svc",
    )
    tls_cert: str = option("", "PEM file: the certificate that the env-server shows")
    tls_key: str = option("", "PEM file: the private key of tls_cert")
    tls_ca: str = option("", "PEM file: authorities of the learner's certificate; empty: dial without TLS")
    tls_server_name: str = option(
        "", "name expected in the certificate of learner and broker; default: the host that is dialed"
    )
    token_file: str = option("", "file of bearer tokens, one a line: the first is sent, any is accepted")
    http_address: str = option("", '"host:port" of /healthz, /readyz and /metrics; empty: none')
    max_steps: int = option(0, "leave once a stream has made so many steps; 0: never")
    max_redials: int = option(0, "give up after so many failed dials in a row; 0: never")
    welcome_timeout_s: float = option(300.0, "seconds to wait for the learner's Welcome before dialing again")
    env_timeout_s: float = option(
        120.0,
        "longest that making, a reset or a step of a stream's environments may take, in seconds; then "
        "their process is replaced",
    )
    max_failures: int = option(5, "failures after which an environment or a stream is given up ...")
    failure_window_s: float = option(60.0, "... when they happen within so many seconds")
    log_level: LogLevel = option("info", "least severe level that is logged")
    log_format: LogFormat = option("auto", "of the log: auto is text on a terminal and JSON lines elsewhere")

    def __post_init__(self) -> None:
        require(self.env != "", "env", self.env, "is required, e.g. PongNoFrameskip-v4")
        require_at_least(1, self, "num_streams", "envs_per_stream", "max_failures")
        require_at_least(0, self, "max_steps", "max_redials", "time_limit")
        require_positive(self, "welcome_timeout_s", "env_timeout_s", "failure_window_s")
        for name, choices in _CHOICES.items():
            value = getattr(self, name)
            require(value in get_args(choices), name, value, f"must be one of {', '.join(get_args(choices))}")
        if self.seed is not None:
            last = self.seed + self.num_streams * self.envs_per_stream - 1
            reason = f"must be 0 to {MAX_SEED}, as must that of the last environment, {last}"
            require(self.seed >= 0 and last <= MAX_SEED, "seed", self.seed, reason)
        require(isinstance(self.env_kwargs, dict), "env_kwargs", self.env_kwargs, "must be a JSON object")
        valid_id = 1 <= len(self.env_server_id) <= MAX_ID_CHARACTERS and self.env_server_id.isprintable()
        require(valid_id, "env_server_id", self.env_server_id, f"must be 1 to {MAX_ID_CHARACTERS} printable characters")
        is_name = len(self.run.encode(errors="replace")) <= MAX_RUN_BYTES and self.run.isprintable()
        require(is_name, "run", self.run, f"must be printable and of at most {MAX_RUN_BYTES} bytes")
        self._check_addresses()
        self._check_files()

    @property
    def fault_policy(self) -> FaultPolicy:
        return FaultPolicy(max_failures=self.max_failures, failure_window_s=self.failure_window_s)

    @property
    def addresses(self) -> tuple[str, ...]:
        """Parts of `address`: UNIX and a path, or "host:port" or "host:first-last", with or without DNS before it."""
        return tuple(part.strip() for part in self.address.split(","))

    @property
    def broker(self) -> str:
        """Address of the broker, "host:port"; "" without one. In "broker:4431" the learner's host is named broker."""
        address = self.address.removeprefix(BROKER)
        return address if address != self.address and is_host_port(address) else ""

    def _check_addresses(self) -> None:
        if self.listen:
            dials_too = self.address != DEFAULT_ADDRESS
            reason = "cannot listen: use auto or grpcio"
            require(self.transport != "native", "transport", self.transport, reason)
            require(not dials_too, "listen", self.listen, f"excludes address = {self.address!r}: choose one direction")
            require(_has_port(self.listen), "listen", self.listen, 'must be "host:port"')
            last_port = int(self.listen.rpartition(":")[2]) + self.num_streams - 1
            require(last_port <= MAX_PORT, "listen", self.listen, f"its last stream would need port {last_port}")
        else:
            reason = 'must be "host:port", "host:first-last", either after "dns:", or "unix:/path", between commas'
            reason += ', or "broker:host:port" alone'
            is_valid = self.broker != "" or all(map(_is_address, self.addresses))
            require(is_valid, "address", self.address, reason)
        valid = not self.http_address or _has_port(self.http_address)
        require(valid, "http_address", self.http_address, 'must be "host:port"')

    def _check_files(self) -> None:
        require(not self.tls_cert or self.tls_key != "", "tls_cert", self.tls_cert, "needs tls_key")
        require(not self.tls_key or self.tls_cert != "", "tls_key", self.tls_key, "needs tls_cert")
        if self.listen:
            require(not self.tls_ca or self.tls_cert != "", "tls_ca", self.tls_ca, "needs tls_cert to listen with")
        else:
            for name in ("tls_cert", "tls_server_name"):
                value = getattr(self, name)
                require(not value or self.tls_ca != "", name, value, "needs tls_ca to verify the learner by")
        for name in PATHS:
            if path := getattr(self, name):
                try:
                    with open(path, "rb"):
                        pass
                except OSError as error:
                    raise ConfigError(f"{name} = {path!r}: {error.strerror}") from error


def _is_address(part: str) -> bool:
    return part.startswith(UNIX) or is_host_ports(part.removeprefix(DNS))


def _has_port(address: str) -> bool:
    host, _, port = address.rpartition(":")
    return host != "" and port.isdecimal() and int(port) <= MAX_PORT


def _with_absolute_paths(config: EnvServerConfig) -> EnvServerConfig:
    paths: dict[str, Any] = {name: str(Path(path).absolute()) for name in PATHS if (path := getattr(config, name))}
    return replace(config, address=",".join(map(absolute_socket, config.addresses)), **paths)


def parse(arguments: Sequence[str], environ: Mapping[str, str] = os.environ) -> EnvServerConfig:
    """Parses a command line into a configuration. Flags take hyphens or underscores. Raises ConfigError.

    --help and unknown flags end the process as argparse does.
    """
    parser = argparse.ArgumentParser(
        "kubebeast-envserver",
        description="Hosts environments for a KubeBeast learner.",
        epilog="example: kubebeast-envserver --env CartPole-v1 --address learner.example:4431; "
        "kubebeast-envserver check --help shows how to try an environment",
        usage="%(prog)s --env ENV [options]",
    )
    return _with_absolute_paths(parse_options(parser, EnvServerConfig, arguments, environ))
