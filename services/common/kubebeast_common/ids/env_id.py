"""Parsing of environment ids, shared by presets, recipes and libraries.

"gymnasium:CartPole-v1", "vector/CartPole-v1" and "CartPole", for which gymnasium makes the newest version, are ids of
the same environment. A module prefix is imported first and does not change the meaning of the id.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from kubebeast_common.ids.atari_games import GAMES, WITH_VERSION_4

KINDS = ("vector/", "envpool/", "pettingzoo/", "dm_env/", "gym/")
"""Prefixes of ids, after the module, for environments that gymnasium.make does not make."""
_ID = re.compile(r"(?:(?P<namespace>[^/]+)/)?(?P<name>.+?)(?:-v(?P<version>\d+))?")
_GAME = re.compile(r"(?P<game>[A-Za-z0-9_]+?)(?P<mode>NoFrameskip|Deterministic)?")
_STICKY = 0.25
"""Probability of repeating the previous action, in ids of version 0."""


@dataclass(frozen=True, slots=True)
class EnvId:
    """The parts of "module:kind/namespace/Name-v0". Only the name is required."""

    module: str
    kind: str
    """One of KINDS, or "" for none."""
    namespace: str
    name: str
    version: int | None
    """Version number; None for the newest."""

    @property
    def plain(self) -> str:
        """Namespace, name and version, without module and kind."""
        namespace = f"{self.namespace}/" if self.namespace else ""
        return f"{namespace}{self.name}" + ("" if self.version is None else f"-v{self.version}")

    @property
    def atari_game(self) -> str | None:
        """Name of the game, possibly an unknown one, e.g. "SpaceInvaders", if this is an Atari id; else None."""
        match = _GAME.fullmatch(self.name)
        if match is None or self.namespace not in ("", "ALE") or self.version not in (None, 0, 4, 5):
            return None
        game = match["game"]
        if self.namespace or match["mode"]:
            return game
        known = WITH_VERSION_4 if self.version in (None, 0) else GAMES
        return game if game in known else None

    @property
    def atari_preset(self) -> Literal["atari-v4", "atari-v5"] | None:
        """The preset of an Atari id; None for other ids and for ids with a kind."""
        if self.kind or self.atari_game is None:
            return None
        version = self.version if self.version is not None else 5 if self.namespace else 4
        return "atari-v5" if version == 5 else "atari-v4"

    @property
    def atari_overrides(self) -> Mapping[str, Any]:
        """Settings of the preset that the id overrides."""
        return {"repeat_action_probability": _STICKY} if self.version == 0 else {}


def is_same_env(first: str, second: str) -> bool:
    """Returns True if two ids differ in their notation at most, that is in module and kind."""
    return first == second or parse_env_id(first).plain == parse_env_id(second).plain


def parse_env_id(text: str) -> EnvId:
    """Parses an id. Any text is accepted; an invalid id does not match an environment."""
    module, _, rest = text.rpartition(":")
    kind = next((kind for kind in KINDS if rest.startswith(kind)), "")
    match = _ID.fullmatch(rest.removeprefix(kind))
    if match is None:
        return EnvId(module, kind, "", rest.removeprefix(kind), None)
    version = None if match["version"] is None else int(match["version"])
    return EnvId(module, kind, match["namespace"] or "", match["name"], version)
