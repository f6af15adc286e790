"""The shapes of an environment in a checkpoint, to rebuild the model and to refuse another environment."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from kubebeast_common.spec.env_config import EnvConfig
from kubebeast_common.spec.leaves import Leaf, LeafSpec


@dataclass(frozen=True, slots=True)
class EnvSpec:
    env_id: str
    observation: tuple[Leaf, ...]
    action: tuple[Leaf, ...]
    env_config: EnvConfig | None = None
    """Settings of the environment; None if unknown. Ignored by `difference`."""

    @classmethod
    def of(
        cls,
        env_id: str,
        observation: Sequence[LeafSpec],
        action: Sequence[LeafSpec],
        env_config: EnvConfig | None = None,
    ) -> "EnvSpec":
        return cls(env_id, tuple(map(Leaf.of, observation)), tuple(map(Leaf.of, action)), env_config)

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> "EnvSpec":
        """Inverts `to_plain`. Raises ValueError if a value is missing or of a wrong type."""
        if missing := {"env_id", "observation", "action"} - plain.keys():
            raise ValueError(f"there is no {', '.join(sorted(missing))}")
        env_id, env_config = plain["env_id"], plain.get("env_config")
        if not isinstance(env_id, str) or not env_id.isprintable():
            raise ValueError(f"env_id is {env_id!r:.100}, not a printable text")
        observation, action = (_leaves(name, plain[name]) for name in ("observation", "action"))
        told = None if env_config is None else EnvConfig.from_plain(env_config)
        return cls(env_id, observation, action, told)

    def __str__(self) -> str:
        observation, action = (", ".join(map(str, leaves)) for leaves in (self.observation, self.action))
        return f"{self.env_id}, observation {observation}, action {action}"

    def to_plain(self) -> dict[str, Any]:
        """Returns plain values for a checkpoint."""
        return {**asdict(self), "env_config": None if self.env_config is None else self.env_config.to_plain()}

    def difference(self, other: "EnvSpec") -> str | None:
        """Describes the difference that keeps a model of this environment from playing `other`; None without one."""
        for kind in ("observation", "action"):
            mine, theirs = getattr(self, kind), getattr(other, kind)
            if len(mine) != len(theirs):
                return f"{len(mine)} {kind} leaves against {len(theirs)}"
            for expected, actual in zip(mine, theirs, strict=True):
                if expected != actual:
                    return f"{kind} leaf {expected} against {actual}"
        return None


def _leaves(name: str, plain: object) -> tuple[Leaf, ...]:
    if not isinstance(plain, (list, tuple)):
        raise ValueError(f"{name} is {plain!r:.100}, not a list of leaves")
    return tuple(map(Leaf.from_plain, plain))


def describe(env_id: str, env_config: EnvConfig | None) -> str:
    """Describes an environment and its settings."""
    return env_id if env_config is None else f"{env_id} with {env_config}"
