"""What an env-server can be told: defaults < KUBEBEAST_* environment < flags."""

import argparse
import json
import os
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal, get_args

from kubebeast_envserver.envs import Preset

LogLevel = Literal["debug", "info", "warning", "error"]
CompressionName = Literal["lz4", "none"]


class ConfigError(ValueError):
    """A value that cannot be used; the message names the field, the value and the reason."""


def _help(text: str) -> dict[str, str]:
    return {"help": text}


@dataclass(frozen=True, kw_only=True, slots=True)
class EnvServerConfig:
    """Everything `kubebeast-envserver` needs; each field is a flag and an environment variable KUBEBEAST_<FIELD>."""

    env: str = field(default="", metadata=_help("environment: a gymnasium id, module:Id, an Atari id, or Mock"))
    address: str = field(default="127.0.0.1:4431", metadata=_help('the learner: "host:port" or "unix:/path"'))
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
    max_redials: int = field(default=0, metadata=_help("give up after so many failed dials in a row; 0: never"))
    welcome_timeout_s: float = field(
        default=300.0, metadata=_help("seconds to wait for the learner's Welcome before dialling again")
    )
    max_failures: int = field(
        default=5, metadata=_help("failures of the environment or its process that end the env-server ...")
    )
    failure_window_s: float = field(default=60.0, metadata=_help("... when they happen within so many seconds"))
    log_level: LogLevel = field(default="info", metadata=_help("least severe level that is logged"))

    def __post_init__(self) -> None:
        _require(self.env != "", "env", self.env, "is required, e.g. PongNoFrameskip-v4")
        for name in ("num_streams", "envs_per_stream", "max_failures"):
            _require(getattr(self, name) >= 1, name, getattr(self, name), "must be at least 1")
        for name in ("welcome_timeout_s", "failure_window_s"):
            _require(getattr(self, name) > 0, name, getattr(self, name), "must be positive")
        for name, choices in (("preset", Preset), ("compression", CompressionName), ("log_level", LogLevel)):
            value = getattr(self, name)
            _require(value in get_args(choices), name, value, f"must be one of {', '.join(get_args(choices))}")
        _require(self.max_redials >= 0, "max_redials", self.max_redials, "must not be negative")
        _require(self.seed is None or self.seed >= 0, "seed", self.seed, "must not be negative")
        _require(isinstance(self.env_kwargs, dict), "env_kwargs", self.env_kwargs, "must be a JSON object")
        valid_id = 1 <= len(self.env_server_id) <= 253 and self.env_server_id.isprintable()
        _require(valid_id, "env_server_id", self.env_server_id, "must be 1 to 253 printable characters")
        valid_address = self.address.startswith("unix:") or self.address.rpartition(":")[2].isdecimal()
        _require(valid_address, "address", self.address, 'must be "host:port" or "unix:/path"')


def _require(condition: bool, name: str, value: object, reason: str) -> None:
    if not condition:
        raise ConfigError(f"{name} = {value!r}: {reason}")


_CONVERTERS: dict[str, Any] = {
    "num_streams": int,
    "envs_per_stream": int,
    "max_redials": int,
    "max_failures": int,
    "seed": int,
    "welcome_timeout_s": float,
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
