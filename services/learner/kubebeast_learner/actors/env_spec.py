"""The shapes of an environment as a checkpoint keeps them: to rebuild the model and to refuse another environment."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from kubebeast_common.env_config import EnvConfig

if TYPE_CHECKING:
    from kubebeast_learner.spec import LeafSpec


@dataclass(frozen=True, slots=True)
class Leaf:
    """One leaf of an observation or action structure; see kubebeast.v1.LeafSpec."""

    path: str
    dtype: str
    shape: tuple[int, ...]
    frame_stack: int
    num_categories: int
    bounded: bool = False
    is_action_mask: bool = False

    @property
    def row_shape(self) -> tuple[int, ...]:
        """`shape`, or `(frame_stack, *shape)` when frame_stack > 1."""
        return (self.frame_stack, *self.shape) if self.frame_stack > 1 else self.shape

    def __str__(self) -> str:
        parts = [f'"{self.path}"' if self.path else "", self.dtype, str(list(self.shape))]
        parts += [f"stack {self.frame_stack}"] * (self.frame_stack > 1)
        parts += [f"{self.num_categories} categories"] * (self.num_categories > 0)
        parts += ["bounded"] * self.bounded
        parts += ["action mask"] * self.is_action_mask
        return " ".join(filter(None, parts))


@dataclass(frozen=True, slots=True)
class EnvSpec:
    env_id: str
    observation: tuple[Leaf, ...]
    action: tuple[Leaf, ...]
    env_config: EnvConfig | None = None
    """How it is made; None where nobody told. No part of `difference`."""

    @classmethod
    def of(
        cls,
        env_id: str,
        observation: Sequence["LeafSpec"],
        action: Sequence["LeafSpec"],
        env_config: EnvConfig | None = None,
    ) -> "EnvSpec":
        return cls(env_id, tuple(map(_copy, observation)), tuple(map(_copy, action)), env_config)

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> "EnvSpec":
        observation, action = (
            tuple(Leaf(**{**leaf, "shape": tuple(leaf["shape"])}) for leaf in plain[name])
            for name in ("observation", "action")
        )
        env_config = plain.get("env_config")
        told = None if env_config is None else EnvConfig.from_plain(env_config)
        return cls(plain["env_id"], observation, action, told)

    def __str__(self) -> str:
        observation, action = (", ".join(map(str, leaves)) for leaves in (self.observation, self.action))
        return f"{self.env_id}, observation {observation}, action {action}"

    def to_plain(self) -> dict[str, Any]:
        """Plain values for a checkpoint."""
        return {**asdict(self), "env_config": None if self.env_config is None else self.env_config.to_plain()}

    def difference(self, other: "EnvSpec") -> str | None:
        """What keeps a model made for this environment from playing `other`, in words; None when nothing does."""
        for kind in ("observation", "action"):
            mine, theirs = getattr(self, kind), getattr(other, kind)
            if len(mine) != len(theirs):
                return f"{len(mine)} {kind} leaves against {len(theirs)}"
            for expected, actual in zip(mine, theirs, strict=True):
                if expected != actual:
                    return f"{kind} leaf {expected} against {actual}"
        return None


def _copy(leaf: "LeafSpec") -> Leaf:
    return Leaf(
        path=leaf.path,
        dtype=leaf.dtype,
        shape=tuple(leaf.shape),
        frame_stack=max(1, leaf.frame_stack),
        num_categories=leaf.num_categories,
        bounded=leaf.bounded,
        is_action_mask=leaf.is_action_mask,
    )


def describe(env_id: str, env_config: EnvConfig | None) -> str:
    """An environment and how it is made, for people."""
    return env_id if env_config is None else f"{env_id} with {env_config}"
