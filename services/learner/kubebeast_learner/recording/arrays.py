"""Rollouts as arrays by name, and back, with a check of every dtype, shape and index."""

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from kubebeast_common.spec.leaves import Leaf
from kubebeast_learner.algorithm.rollout import Rollout, map_tensors
from kubebeast_learner.distributions import ActionDistribution
from kubebeast_learner.recording.shards import Batch, Source
from kubebeast_learner.recording.stacks import layout_of, single_frames, whole_stacks

Arrays = Mapping[str, NDArray[Any]]
ORIGIN_ROWS = 3


class Sizes(NamedTuple):
    """Sizes that an environment does not determine; None if any is right."""

    num_logits: int | None = None
    state_shapes: Sequence[tuple[int | None, int | None]] | None = None
    """(num_layers, size) of every tensor of the core state."""
    num_tasks: int | None = None


def copied(rollout: Rollout, observation: Sequence[Leaf]) -> tuple[Rollout, list[str]]:
    """Returns a copy of a rollout on the CPU, with stacks as single frames, and the layout of each leaf in `rollout`.

    Single frames take a k-th of the memory of whole stacks.
    """
    has_index = rollout.frame_index != ()
    layouts = [
        layout_of(leaf, spec.frame_stack, has_index=has_index)
        for leaf, spec in zip(rollout.observation, observation, strict=True)
    ]
    others = map_tensors(torch.clone, replace(rollout, observation=(), frame_index=()))
    if has_index:
        frames, index = (tuple(map(torch.clone, each)) for each in (rollout.observation, rollout.frame_index))
        return replace(others, observation=frames, frame_index=index), layouts
    none = torch.zeros(*rollout.is_first.shape, 0, dtype=torch.int32)
    pairs = [
        (leaf.clone(), none) if layout == "rows" else single_frames(leaf, rollout.valid)
        for leaf, layout in zip(rollout.observation, layouts, strict=True)
    ]
    frames, index = tuple(zip(*pairs, strict=True))
    return replace(others, observation=frames, frame_index=index), layouts


def arrays_of(rollout: Rollout) -> dict[str, NDArray[Any]]:
    """Returns the C-contiguous arrays of a rollout on the CPU: name, or name.place for one of several."""
    arrays: dict[str, NDArray[Any]] = {}
    for field in fields(Rollout):
        value = getattr(rollout, field.name)
        if isinstance(value, Tensor):
            arrays[field.name] = np.ascontiguousarray(value.numpy())
        elif isinstance(value, tuple):
            arrays |= {f"{field.name}.{place}": np.ascontiguousarray(each.numpy()) for place, each in enumerate(value)}
    return arrays


def rollout_of(
    arrays: Arrays, source: Source, batch: Batch, distribution: ActionDistribution, sizes: Sizes | None = None
) -> Rollout:
    """Returns the rollout with stacks as single frames.

    Raises ValueError, with the name of an array, if one is missing, unknown, or of another dtype or shape, or has an
    index that is too large.
    """
    _check_forms(arrays, _forms(source, batch, distribution, sizes or Sizes(), arrays))
    _check_indices(arrays, source, distribution, sizes or Sizes())
    tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}
    num_leaves = len(source.env_spec.observation)
    frames, index = ([tensors.pop(f"{name}.{place}") for place in range(num_leaves)] for name in _PER_LEAF)
    core_state = [tensors.pop(name) for name in sorted(tensors, key=_place) if name.startswith("core_state.")]
    return Rollout(
        observation=tuple(frames),
        frame_index=tuple(index),
        core_state=tuple(core_state),
        distribution=distribution,
        num_replayed=batch.num_replayed,
        **tensors,  # type: ignore[arg-type] # those of single fields, by name
    )


def as_trained_on(rollout: Rollout, batch: Batch) -> Rollout:
    """Returns a result of `rollout_of` as it was trained on: stacks that were whole, in the same memory order."""
    if "frames" in batch.layouts:
        return rollout
    triples = zip(rollout.observation, rollout.frame_index, batch.layouts, strict=True)
    whole = tuple(
        frames if layout == "rows" else whole_stacks(frames, index, interleaved=layout == "interleaved")
        for frames, index, layout in triples
    )
    return replace(rollout, observation=whole, frame_index=())


_PER_LEAF = ("observation", "frame_index")


def _place(name: str) -> int:
    place = name.rpartition(".")[2]
    return int(place) if place.isdecimal() else 0


_Form = tuple[str, tuple[int | None, ...]]


def _forms(
    source: Source, batch: Batch, distribution: ActionDistribution, sizes: Sizes, arrays: Arrays
) -> dict[str, _Form]:
    """Returns dtype and shape of every array, with None for any size."""
    size = source.batch_size
    rows, transitions = (source.unroll_length + 1, size), (source.unroll_length, size)
    action = str(distribution.action_dtype).removeprefix("torch.")
    forms: dict[str, _Form] = {
        "rewards": ("float32", rows),
        "terminated": ("bool", rows),
        "truncated": ("bool", rows),
        "is_first": ("bool", rows),
        "last_action": (action, (*rows, *distribution.action_shape)),
        "action": (action, (*transitions, *distribution.action_shape)),
        "policy_logits": ("float32", (*transitions, sizes.num_logits)),
        "valid": ("bool", transitions),
        "policy_version": ("int64", transitions),
    }
    for place, (leaf, layout) in enumerate(zip(source.env_spec.observation, batch.layouts, strict=True)):
        is_stack = leaf.frame_stack > 1
        if (layout == "rows") == is_stack:
            raise ValueError(f"observation.{place} has the layout {layout}, its stack has {leaf.frame_stack} frames")
        forms[f"observation.{place}"] = leaf.dtype, (None if is_stack else rows[0], size, *leaf.shape)
        forms[f"frame_index.{place}"] = "int32", (*rows, leaf.frame_stack if is_stack else 0)
    num_states = sum(name.startswith("core_state.") for name in arrays)
    states = [(None, None)] * num_states if sizes.state_shapes is None else sizes.state_shapes
    forms |= {f"core_state.{place}": ("float32", (layers, size, width)) for place, (layers, width) in enumerate(states)}
    has_tasks = "task" in arrays if sizes.num_tasks is None else sizes.num_tasks > 1
    forms |= {"task": ("int64", (1, size))} if has_tasks else {}
    return forms | ({"origin": ("int64", (ORIGIN_ROWS, size))} if "origin" in arrays else {})


def _check_forms(arrays: Arrays, forms: Mapping[str, _Form]) -> None:
    if wrong := sorted(arrays.keys() ^ forms.keys()):
        name = wrong[0]
        raise ValueError(
            f"there is no {name}" if name in forms else f"{name} is not what this model and environment have"
        )
    for name, (dtype, shape) in forms.items():
        array = arrays[name]
        fits = len(shape) == array.ndim and all(map(_fits, shape, array.shape))
        if array.dtype.name != dtype or not fits:
            expected = f"{dtype} [{', '.join('*' if each is None else str(each) for each in shape)}]"
            raise ValueError(f"{name} is {array.dtype.name} {list(array.shape)}, expected {expected}")


def _fits(expected: int | None, size: int) -> bool:
    return expected in (None, size)


def _check_indices(arrays: Arrays, source: Source, distribution: ActionDistribution, sizes: Sizes) -> None:
    """Raises ValueError for a truth value, a frame, a category or a task that does not exist."""
    ends: dict[str, int] = {name: 2 for name, array in arrays.items() if array.dtype == np.bool_}
    for place, leaf in enumerate(source.env_spec.observation):
        if leaf.frame_stack > 1:
            ends[f"frame_index.{place}"] = arrays[f"observation.{place}"].shape[0]
        if leaf.num_categories:
            ends[f"observation.{place}"] = leaf.num_categories
    if "task" in arrays and sizes.num_tasks is not None:
        ends["task"] = sizes.num_tasks
    for name, end in ends.items():
        _check_values(name, arrays[name].view(np.uint8) if arrays[name].dtype == np.bool_ else arrays[name], end)
    for name in ("action", "last_action"):
        with np.errstate(invalid="ignore"):  # what is not finite becomes an integer that no category has
            leaves = distribution.to_leaves(torch.from_numpy(arrays[name]))
        for leaf, array in zip(distribution.leaves, leaves, strict=True):
            if leaf.num_categories:
                _check_values(name, array, leaf.num_categories)


def _check_values(name: str, array: NDArray[Any], end: int) -> None:
    if array.size and not (array.min() >= 0 and array.max() < end):
        raise ValueError(f"{name} has values outside 0 to {end - 1}")
