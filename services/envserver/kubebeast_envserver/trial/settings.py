"""Settings of `kubebeast-envserver check`."""

import argparse
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, get_args

from kubebeast_common.settings import require, require_at_least
from kubebeast_common.spec.env_config import Wrapper
from kubebeast_common.spec.limits import DEFAULT_MESSAGE_MIB
from kubebeast_envserver.config import MAX_SEED, Preset
from kubebeast_envserver.options import option, parse_options


@dataclass(frozen=True, kw_only=True, slots=True)
class TrialConfig:
    """Settings of a trial: each field is a flag, a KUBEBEAST_<FIELD> and a line of --config; env is an argument."""

    env: str = option("", "environment: a gymnasium id, module:Id, pettingzoo/..., an Atari id, or Mock")
    preset: Preset = option("auto", "Atari preprocessing; auto: selected by the environment id")
    env_kwargs: dict[str, Any] = field(
        default_factory=dict, metadata={"help": "JSON object: arguments of the environment or overrides of the preset"}
    )
    wrappers: tuple[Wrapper, ...] = option(
        (), "put around the environment, in this order: module:Wrapper, separated by commas, or a JSON list"
    )
    time_limit: int = option(0, "steps after which an episode is truncated; 0: as the environment is registered")
    steps: int = option(1000, "number of steps, with random actions; default: 1000")
    episodes: int = option(0, "stop after this many episodes, if that is before the last step; 0: no such limit")
    seed: int = option(1, "seed of the environment and of the actions; default: 1")
    max_message_mib: int = option(
        DEFAULT_MESSAGE_MIB, "largest message that the learner accepts, in MiB; a larger row fails the check"
    )
    json: bool = option(False, "print one JSON line instead of the table")

    def __post_init__(self) -> None:
        require(self.env != "", "env", self.env, "must be named")
        require(self.preset in get_args(Preset), "preset", self.preset, f"must be one of {', '.join(get_args(Preset))}")
        require(isinstance(self.env_kwargs, dict), "env_kwargs", self.env_kwargs, "must be a JSON object")
        require_at_least(1, self, "steps", "max_message_mib")
        require_at_least(0, self, "episodes", "time_limit")
        require(0 <= self.seed <= MAX_SEED, "seed", self.seed, f"must lie in [0, {MAX_SEED}]")

    @property
    def making(self) -> dict[str, Any]:
        """Arguments of the functions that make environments."""
        return {name: getattr(self, name) for name in ("preset", "env_kwargs", "wrappers", "time_limit")}


def parse(arguments: Sequence[str], environ: Mapping[str, str] = os.environ) -> TrialConfig:
    """Parses the words after `check`. Raises ConfigError; --help and unknown flags end the process."""
    parser = argparse.ArgumentParser(
        "kubebeast-envserver check",
        description="Tries an environment with random actions: its messages, its episodes, and every violation.",
        epilog="example: kubebeast-envserver check my_envs:Maze-v0 --steps 5000",
        usage="%(prog)s ENV [options]",
    )
    return parse_options(parser, TrialConfig, arguments, environ, positional="env")
