"""Commands of `kubebeast`, which installed packages provide as entry points."""

import contextlib
import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points

from kubebeast_common.cli.sources import LayeredFlags, layer_flags

GROUP = "kubebeast.commands"
"""Group of entry points; each is a mapping from the words after `kubebeast` to a Command."""
SETTINGS_GROUP = "kubebeast.settings"
"""Group of entry points; each is a configuration class of another program that reads KUBEBEAST_* variables."""
PROVIDERS: Mapping[str, Sequence[str]] = {
    "kubebeast-learner": (
        *("train", "mono", "learner", "tune", "eval", "render", "export", "publish", "export-data", "check-env"),
    ),
    "kubebeast-observe": ("plot", "report", "top", "fleet"),
    "kubebeast-sweep": ("sweep",),
    "kubebeast-broker": ("broker",),
}
"""Commands by the package that provides them, in the order of the overview."""

LayerFlags = Callable[[type, Sequence[str], Mapping[str, str]], LayeredFlags]


@dataclass(frozen=True, kw_only=True, slots=True)
class Command:
    summary: str
    examples: Sequence[str]
    """Words after `kubebeast NAME`, for the end of --help."""
    config_type: type
    target: str
    """module:function, called with the configuration; imported late, as torch takes seconds."""
    layer_flags: LayerFlags = layer_flags
    """Adds the settings of other sources to the flags of the command line."""
    has_sources: bool = False
    """True if --config and --recipe are offered."""
    plays: bool = False
    """True if environments run in its own process."""


@functools.cache
def find_commands() -> dict[str, Command]:
    """Returns the commands of all installed packages by name, those of PROVIDERS first."""
    found: dict[str, Command] = {}
    order = list(PROVIDERS)

    def place(package: str) -> int:
        return order.index(package) if package in order else len(order)

    points = entry_points(group=GROUP)
    for point in sorted(points, key=lambda point: (place(point.dist.name if point.dist else ""), point.name)):
        found |= point.load()
    return found


def other_settings() -> list[type]:
    """Returns the configurations of programs other than `kubebeast`, such as the env-server."""
    found = []
    for point in entry_points(group=SETTINGS_GROUP):
        with contextlib.suppress(ModuleNotFoundError):  # a package without those that it needs
            found.append(point.load())
    return found


def package_of(name: str) -> str:
    """Returns the package that provides a command of PROVIDERS and is not installed; "" if there is none."""
    return next((package for package, names in PROVIDERS.items() if name in names), "")
