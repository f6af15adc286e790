"""What an env-server can be told: defaults < KUBEBEAST_* environment < flags."""

import argparse
import json
import os
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal, get_args

from kubebeast_envserver.log import LogFormat, LogLevel

Preset = Literal["auto", "none", "atari-v4", "atari-v5"]
CompressionName = Literal["lz4", "none"]
_CHOICES = {"preset": Preset, "compression": CompressionName, "log_level": LogLevel, "log_format": LogFormat}

DEFAULT_ADDRESS = "127.0.0.1:4431"
_MAX_PORT = 65_535


class ConfigError(ValueError):
    """A value that cannot be used; the message names the field, the value and the reason."""


def _help(text: str) -> dict[str, str]:
    return {"help": text}


@dataclass(frozen=True, kw_only=True, slots=True)
class EnvServerConfig:
    """Everything `kubebeast-envserver` needs; each field is a flag and an environment variable KUBEBEAST_<FIELD>."""

    env: str = field(default="", metadata=_help("environment: a gymnasium id, module:Id, an Atari id, or Mock"))
    address: str = field(default=DEFAULT_ADDRESS, metadata=_help('the learner to dial: "host:port" or "unix:/path"'))
    listen: str = field(
        default="",
        metadata=_help('"host:port": wait for a learner that dials instead; stream i listens on port + i'),
    )
    num_streams: int = field(
        default=1, metadata=_help("streams to the learner; each steps its environments in a process of its own")
    )
    envs_per_stream: int = field(default=16, metadata=_help("environments that step together on a stream"))
    preset: Preset = field(default="auto", metadata=_help("Atari preprocessing; auto goes by the id"))
    env_kwargs: dict[str, Any] = field(
        default_factory=dict, metadata=_help("JSON object: arguments of the environment or overrides of the preset")
    )
    seed: int | None = field(
        default=None, metadata=_help("seed of the first environment, the next ones count up; default: random")
    )
    env_server_id: str = field(
        default_factory=socket.gethostname,
        metadata=_help("name of this env-server across restarts; default: host name"),
    )
    compression: CompressionName = field(
        default="lz4", metadata=_help("offered to the learner for uint8 leaves of 1 KiB and more")
    )
    tls_cert: str = field(default="", metadata=_help("PEM file: the certificate that the env-server shows"))
    tls_key: str = field(default="", metadata=_help("PEM file: the private key of tls_cert"))
    tls_ca: str = field(
        default="", metadata=_help("PEM file: authorities of the learner's certificate; empty: no TLS where it dials")
    )
    tls_server_name: str = field(
        default="", metadata=_help("name expected in the learner's certificate; default: the host that is dialled")
    )
    token_file: str = field(
        default="", metadata=_help("file of bearer tokens, one a line: the first is sent, any is accepted")
    )
    http_address: str = field(default="", metadata=_help('"host:port" of /healthz, /readyz and /metrics; empty: none'))
    max_steps: int = field(default=0, metadata=_help("leave once a stream has made so many steps; 0: never"))
    max_redials: int = field(default=0, metadata=_help("give up after so many failed dials in a row; 0: never"))
    welcome_timeout_s: float = field(
        default=300.0, metadata=_help("seconds to wait for the learner's Welcome before dialling again")
    )
    env_timeout_s: float = field(
        default=120.0,
        metadata=_help(
            "longest that making, a reset or a step of a stream's environments may take, in seconds; then "
            "their process is replaced"
        ),
    )
    max_failures: int = field(
        default=5, metadata=_help("failures after which an environment or a stream is given up ...")
    )
    failure_window_s: float = field(default=60.0, metadata=_help("... when they happen within so many seconds"))
    log_level: LogLevel = field(default="info", metadata=_help("least severe level that is logged"))
    log_format: LogFormat = field(
        default="auto", metadata=_help("of the log: auto is text on a terminal and JSON lines elsewhere")
    )

    def __post_init__(self) -> None:
        _require(self.env != "", "env", self.env, "is required, e.g. PongNoFrameskip-v4")
        for name in ("num_streams", "envs_per_stream", "max_failures"):
            _require(getattr(self, name) >= 1, name, getattr(self, name), "must be at least 1")
        for name in ("welcome_timeout_s", "env_timeout_s", "failure_window_s"):
            _require(getattr(self, name) > 0, name, getattr(self, name), "must be positive")
        for name, choices in _CHOICES.items():
            value = getattr(self, name)
            _require(value in get_args(choices), name, value, f"must be one of {', '.join(get_args(choices))}")
        for name in ("max_steps", "max_redials"):
            _require(getattr(self, name) >= 0, name, getattr(self, name), "must not be negative")
        _require(self.seed is None or self.seed >= 0, "seed", self.seed, "must not be negative")
        _require(isinstance(self.env_kwargs, dict), "env_kwargs", self.env_kwargs, "must be a JSON object")
        valid_id = 1 <= len(self.env_server_id) <= 253 and self.env_server_id.isprintable()
        _require(valid_id, "env_server_id", self.env_server_id, "must be 1 to 253 printable characters")
        self._check_addresses()
        self._check_files()

    def _check_addresses(self) -> None:
        if self.listen:
            dials_too = self.address != DEFAULT_ADDRESS
            _require(not dials_too, "listen", self.listen, f"excludes address = {self.address!r}: choose one direction")
            _require(_has_port(self.listen), "listen", self.listen, 'must be "host:port"')
            last_port = int(self.listen.rpartition(":")[2]) + self.num_streams - 1
            _require(last_port <= _MAX_PORT, "listen", self.listen, f"its last stream would need port {last_port}")
        else:
            valid = self.address.startswith("unix:") or _has_port(self.address)
            _require(valid, "address", self.address, 'must be "host:port" or "unix:/path"')
        valid = not self.http_address or _has_port(self.http_address)
        _require(valid, "http_address", self.http_address, 'must be "host:port"')

    def _check_files(self) -> None:
        _require(not self.tls_cert or self.tls_key != "", "tls_cert", self.tls_cert, "needs tls_key")
        _require(not self.tls_key or self.tls_cert != "", "tls_key", self.tls_key, "needs tls_cert")
        if self.listen:
            _require(not self.tls_ca or self.tls_cert != "", "tls_ca", self.tls_ca, "needs tls_cert to listen with")
        else:
            for name in ("tls_cert", "tls_server_name"):
                value = getattr(self, name)
                _require(not value or self.tls_ca != "", name, value, "needs tls_ca to verify the learner by")
        for name in ("tls_cert", "tls_key", "tls_ca", "token_file"):
            if path := getattr(self, name):
                try:
                    with open(path, "rb"):
                        pass
                except OSError as error:
                    raise ConfigError(f"{name} = {path!r}: {error.strerror}") from error


def _has_port(address: str) -> bool:
    host, _, port = address.rpartition(":")
    return host != "" and port.isdecimal() and int(port) <= _MAX_PORT


def _require(condition: bool, name: str, value: object, reason: str) -> None:
    if not condition:
        raise ConfigError(f"{name} = {value!r}: {reason}")


_CONVERTERS: dict[str, Any] = {
    "num_streams": int,
    "envs_per_stream": int,
    "max_steps": int,
    "max_redials": int,
    "max_failures": int,
    "seed": int,
    "welcome_timeout_s": float,
    "env_timeout_s": float,
    "failure_window_s": float,
    "env_kwargs": json.loads,
}


def _convert(name: str, text: str) -> Any:
    try:
        return _CONVERTERS.get(name, str)(text)
    except ValueError as error:
        raise ConfigError(f"{name} = {text!r}: {error}") from error


def parse(arguments: Sequence[str], environ: Mapping[str, str] = os.environ) -> EnvServerConfig:
    """The configuration of a command line; flags take hyphens or underscores. Raises ConfigError.

    --help and unknown flags end the process as argparse does.
    """
    parser = argparse.ArgumentParser("kubebeast-envserver", description="Hosts environments for a KubeBeast learner.")
    texts: dict[str, str] = {}
    for option in fields(EnvServerConfig):
        hyphen = f"--{option.name.replace('_', '-')}"
        spellings = dict.fromkeys((hyphen, f"--{option.name}"))
        parser.add_argument(*spellings, dest=option.name, metavar="VALUE", help=option.metadata["help"])
        if f"KUBEBEAST_{option.name.upper()}" in environ:
            texts[option.name] = environ[f"KUBEBEAST_{option.name.upper()}"]
    flags = vars(parser.parse_args(arguments))
    texts |= {name: text for name, text in flags.items() if text is not None}
    return EnvServerConfig(**{name: _convert(name, text) for name, text in texts.items()})
