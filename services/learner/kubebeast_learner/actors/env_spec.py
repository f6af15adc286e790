"""The shapes of an environment in a checkpoint, to rebuild the model and to refuse another environment."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any

from kubebeast_common.env_config import EnvConfig
from kubebeast_common.text import printable

if TYPE_CHECKING:
    from kubebeast_learner.spec import LeafSpec

DTYPES = frozenset({"uint8", "int8", "int16", "int32", "int64", "float32", "float64", "bool"})
"""Dtypes of leaves, as in kubebeast.v1.DType."""
MAX_ELEMENTS = 2**31
"""Most elements of a leaf's row, and most categories of a leaf: no more than a message carries."""
MAX_FRAME_STACK = 256


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

    @classmethod
    def from_plain(cls, plain: object) -> "Leaf":
        """Creates a leaf from its fields by name. Raises ValueError if one is missing, unknown or invalid."""
        if not isinstance(plain, Mapping):
            raise ValueError(f"a leaf is {plain!r:.100}, not a mapping")
        leaf: dict[str, Any] = {"bounded": False, "is_action_mask": False, **plain}
        if wrong := leaf.keys() ^ {field.name for field in fields(cls)}:
            raise ValueError(f"a leaf lacks or has {', '.join(sorted(map(str, wrong)))}")
        shape = leaf["shape"]
        is_shape = isinstance(shape, (list, tuple)) and all(_is_count(size, MAX_ELEMENTS) for size in shape)
        for name, is_right in {
            "path": isinstance(leaf["path"], str),
            "dtype": isinstance(leaf["dtype"], str) and leaf["dtype"] in DTYPES,
            "shape": is_shape,
            "frame_stack": _is_count(leaf["frame_stack"], MAX_FRAME_STACK),
            "num_categories": _is_count(leaf["num_categories"], MAX_ELEMENTS),
            "bounded": isinstance(leaf["bounded"], bool),
            "is_action_mask": isinstance(leaf["is_action_mask"], bool),
        }.items():
            if not is_right:
                raise ValueError(f"a leaf has {name} {leaf[name]!r:.100}")
        made = cls(**{**leaf, "shape": tuple(shape)})
        if math.prod(made.row_shape) > MAX_ELEMENTS:
            raise ValueError(f"a leaf has shape {list(made.row_shape)!r:.100}, more than {MAX_ELEMENTS} elements")
        return made

    def __str__(self) -> str:
        parts = [f'"{printable(self.path, 255)}"' if self.path else "", self.dtype, str(list(self.shape))]
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
    """Settings of the environment; None if unknown. Ignored by `difference`."""

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


def _is_count(value: object, most: int) -> bool:
    return type(value) is int and 0 <= value <= most


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
    """Describes an environment and its settings."""
    return env_id if env_config is None else f"{env_id} with {env_config}"
