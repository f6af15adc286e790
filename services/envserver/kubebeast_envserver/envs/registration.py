"""Registration of ids that gymnasium knows only after an import, and advice on libraries that are not installed."""

import logging
import re
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from typing import NamedTuple

from gymnasium.envs import registration

from kubebeast_common.ids.env_id import EnvId, parse_env_id
from kubebeast_common.user_code import describe, raise_if_interrupt

logger = logging.getLogger(__name__)

_ANY = "__root__"
OURS = {"Catch": "kubebeast_envserver.catch"}
"""Names of environments of this package, and the module that registers them."""
_MUJOCO = "HalfCheetah|Ant|Hopper|Walker2d|Humanoid|HumanoidStandup|Swimmer|Reacher|Pusher|Inverted(Double)?Pendulum"
_HIGHWAY = (
    "highway(-fast)?|merge(-generic)?|roundabout(-generic)?|parking.*|intersection.*|racetrack.*|exit|u-turn.*|two-way"
)
_ROBOTICS = "Fetch.+|HandReach.*|HandManipulate.+|PointMaze.+|AntMaze.+|AdroitHand.+|FrankaKitchen"


class _Library(NamedTuple):
    ids: str
    """Regular expression of ids without module and prefix."""
    package: str
    requirement: str
    """Requirement for pip."""
    registers: str = ""
    """Module that registers the ids on import, if gymnasium does not know them by itself."""


_LIBRARIES = (
    _Library(r"ALE/.+", "ale_py", "kubebeast[atari]", "ale_py"),
    _Library(r"MinAtar/.+", "minatar", "kubebeast[minatar]"),
    _Library(r"dm_control/.+", "dm_control", "kubebeast[dm-control]", "shimmy"),
    _Library(rf"({_MUJOCO})(-v\d+)?", "mujoco", "kubebeast[mujoco]"),
    _Library(r"(MiniGrid|BabyAI)-.+", "minigrid", "minigrid", "minigrid"),
    _Library(r"MiniWorld-.+", "miniworld", "miniworld", "miniworld"),
    _Library(rf"({_HIGHWAY})(-v\d+)?", "highway_env", "highway-env", "highway_env"),
    _Library(rf"({_ROBOTICS})(-v\d+)?", "gymnasium_robotics", "gymnasium-robotics", "gymnasium_robotics"),
    _Library(r"PyFlyt/.+", "PyFlyt", "pyflyt", "PyFlyt.gym_envs"),
    _Library(r"(LunarLander(Continuous)?|BipedalWalker(Hardcore)?|CarRacing)(-v\d+)?", "Box2D", "gymnasium[box2d]"),
)


def registered_id(name: str) -> str:
    """Returns "Namespace/Id" or "Id" with its version, the newest if it names none.

    An id that gymnasium does not know is registered if this package or an installed one has it. Known libraries are
    imported. Others register ids in an entry point, which gymnasium 1.0 no longer calls: one for each namespace, _ANY
    for ids without one. Raises the errors of the package of a namespace or of a known library.
    """
    if not _is_known(name):
        _register(name)
    parsed = parse_env_id(name)
    return name if parsed.version is not None else _newest(parsed).plain


def name_one_environment(one: str, other: str) -> bool:
    """Returns True if two ids name the same environment: with or without a module, and with or without the newest
    version.
    """
    first, second = (_newest(parse_env_id(text)) for text in (one, other))
    modules = {first.module, second.module} - {"", "gymnasium"}
    return len(modules) < 2 and replace(first, module="") == replace(second, module="")


def _newest(parsed: EnvId) -> EnvId:
    """Returns the id with its newest version if it names none and gymnasium knows one."""
    if parsed.version is not None:
        return parsed
    version = registration.find_highest_version(parsed.namespace or None, parsed.name)
    return parsed if version is None else replace(parsed, version=version)


def _register(name: str) -> None:
    parsed = parse_env_id(name)
    if not parsed.namespace and parsed.name in OURS:
        import_module(OURS[parsed.name])
        return
    library = _library_of(parsed)
    if library is not None and library.registers and find_spec(library.package) is not None:
        import_module(library.registers)
    for entry_point in _entry_points(parsed.namespace or _ANY, name):
        try:
            register = entry_point.load()
            if not _is_known(name):  # importing the package may have been enough
                register()
        except BaseException as error:
            if parsed.namespace:
                raise
            raise_if_interrupt(error)  # another package's error does not concern this id
            logger.warning("the environments of %s are not registered: %s", entry_point.value, describe(error))


def missing_library(name: str) -> str:
    """Returns the pip command for a missing library, to append to an error; empty if none is known to be missing."""
    library = _library_of(parse_env_id(name))
    if library is None or find_spec(library.package) is not None:
        return ""
    return f": pip install '{library.requirement}'"


def _library_of(parsed: EnvId) -> _Library | None:
    return next((library for library in _LIBRARIES if re.fullmatch(library.ids, parsed.plain)), None)


def _entry_points(group_name: str, name: str) -> Iterator[EntryPoint]:
    """Yields the entry points that may register `name`, until one has: every package may have one named _ANY."""
    for entry_point in entry_points(group="gymnasium.envs", name=group_name):
        if _is_known(name):
            return
        yield entry_point


def _is_known(name: str) -> bool:
    parsed = parse_env_id(name)
    return any(
        (spec.namespace or "", spec.name) == (parsed.namespace, parsed.name) for spec in registration.registry.values()
    )
