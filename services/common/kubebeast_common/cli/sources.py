"""Sources of a command's settings: each becomes flags in front of the user's own, so that one parser checks all."""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import get_origin

from kubebeast_common.cli.settings import flags_of, setting_types
from kubebeast_common.settings import read_environment
from kubebeast_common.variables import PREFIX


@dataclass(frozen=True, slots=True)
class LayeredFlags:
    """Flags of every source, in rising precedence."""

    from_sources: list[str]
    """Flags from all sources but the command line."""
    from_user: list[str]
    notes: list[str]
    """One line per source with its settings that no other source overrides, for the log, --help and error messages."""
    hidden: Mapping[str, object] = field(default_factory=dict)
    """Values of hidden fields of the configuration."""

    @property
    def flags(self) -> list[str]:
        return [*self.from_sources, *self.from_user]


def environment_settings(config_type: type, environ: Mapping[str, str]) -> dict[str, object]:
    """Returns the settings in KUBEBEAST_* variables; commas or spaces separate the items of a list."""
    types = setting_types(config_type)
    return {
        name: text.replace(",", " ").split() if get_origin(types[name]) is tuple else text
        for name, text in read_environment(environ, types).items()
    }


def layer_flags(config_type: type, user_flags: Sequence[str], environ: Mapping[str, str]) -> LayeredFlags:
    """Puts the settings of the environment before `user_flags`, which stay unchanged.

    Raises ConfigError with the setting, its value and its source if a variable cannot be used.
    """
    return join_sources(config_type, {"environment": environment_settings(config_type, environ)}, user_flags)


def join_sources(
    config_type: type, sources: Mapping[str, Mapping[str, object]], user_flags: Sequence[str]
) -> LayeredFlags:
    """Puts the settings of `sources`, in rising precedence, before `user_flags`.

    Raises ConfigError with the setting, its value and its source for a value of a wrong kind.
    """
    types, flags, notes = setting_types(config_type), list[str](), list[str]()
    all_sources = [*sources.items(), ("flags", named_by(user_flags))]
    for rank, (source, settings) in enumerate(all_sources[:-1]):
        for name, value in settings.items():
            flags += flags_of(name, value, types[name], source)
        overridden = {name for _, later in all_sources[rank + 1 :] for name in later}
        if counting := [f"{name}={value}" for name, value in settings.items() if name not in overridden]:
            notes.append(f"{source}: {', '.join(counting)}")
    return LayeredFlags(flags, list(user_flags), notes)


def log_format_of(user_flags: Sequence[str], environ: Mapping[str, str]) -> str:
    """Returns the setting log_format before any validation, for messages until then."""
    return scan(user_flags, "log-format").log_format or environ.get(f"{PREFIX}LOG_FORMAT") or "auto"


def scan(user_flags: Sequence[str], *names: str) -> argparse.Namespace:
    """Parses flags that determine the parsing of all others; None for a flag that is absent or has no value."""
    scanner = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    for name in names:
        scanner.add_argument(*dict.fromkeys((f"--{name}", f"--{name.replace('-', '_')}")), nargs="?")
    return scanner.parse_known_args([flag for flag in user_flags if flag not in ("-h", "--help")])[0]


def named_by(flags: Sequence[str]) -> dict[str, object]:
    """Returns the settings that flags name, without their values."""
    names = [flag[2:].partition("=")[0].replace("-", "_") for flag in flags if flag.startswith("--")]
    return dict.fromkeys([*names, *(name.removeprefix("no_") for name in names)])
