"""Unrolls in shared memory: an actor process fills a block row by row, the learner copies its columns into a batch.

A block is a Rollout; its columns are the environments of one actor process.
"""

import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from kubebeast_common.spec.env_spec import EnvSpec
from kubebeast_common.spec.leaves import Leaf
from kubebeast_learner.algorithm.rollout import Rollout, map_tensors
from kubebeast_learner.config import ConfigError
from kubebeast_learner.distributions import ActionDistribution
from kubebeast_learner.models import Model

_ALIGNMENT = 64

Allocate = Callable[[tuple[int, ...], torch.dtype], Tensor]


@dataclass(frozen=True, slots=True)
class BlockLayout:
    """The arrays of a block; the same in every process."""

    spec: EnvSpec
    unroll_length: int
    distribution: ActionDistribution
    state_shapes: tuple[tuple[int, int], ...]
    """(num_layers, size) of every tensor of the core state."""
    interleaved: tuple[bool, ...]
    """For every observation leaf, True if the frames of its stack are innermost in memory, as Model.interleaved."""

    @classmethod
    def of(cls, spec: EnvSpec, unroll_length: int, model: Model) -> "BlockLayout":
        interleaved = tuple(model.interleaved) or (False,) * len(spec.observation)
        return cls(spec, unroll_length, model.distribution, model.state_shapes, interleaved)

    def make(self, num_envs: int, allocate: Allocate) -> Rollout:
        """Creates a block of num_envs columns; calls `allocate` for each of its tensors, in a fixed order."""
        distribution = self.distribution
        rows, transitions = (self.unroll_length + 1, num_envs), (self.unroll_length, num_envs)
        return Rollout(
            observation=tuple(
                _allocate_leaf(leaf, rows, interleaved, allocate)
                for leaf, interleaved in zip(self.spec.observation, self.interleaved, strict=True)
            ),
            rewards=allocate(rows, torch.float32),
            terminated=allocate(rows, torch.bool),
            truncated=allocate(rows, torch.bool),
            is_first=allocate(rows, torch.bool),
            last_action=allocate((*rows, *distribution.action_shape), distribution.action_dtype),
            action=allocate((*transitions, *distribution.action_shape), distribution.action_dtype),
            policy_logits=allocate((*transitions, distribution.num_logits), torch.float32),
            valid=allocate(transitions, torch.bool),
            policy_version=allocate(transitions, torch.int64),
            core_state=tuple(
                allocate((num_layers, num_envs, size), torch.float32) for num_layers, size in self.state_shapes
            ),
            distribution=distribution,
        )

    def num_bytes(self, num_envs: int) -> int:
        """Returns the size of a block of num_envs columns."""
        sizes: list[int] = []

        def count(shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
            sizes.append(_aligned(math.prod(shape) * dtype.itemsize))
            return torch.empty(shape, dtype=dtype, device="meta")

        self.make(num_envs, count)
        return sum(sizes)

    def blocks_in(self, memory: Tensor, num_envs: int) -> list[Rollout]:
        """Returns the blocks that `memory`, uint8 [k * num_bytes(num_envs)], holds one after the other."""
        offset = 0

        def carve(shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
            nonlocal offset
            size = math.prod(shape) * dtype.itemsize
            piece = memory[offset : offset + size].view(dtype).view(shape)
            offset += _aligned(size)
            return piece

        return [self.make(num_envs, carve) for _ in range(memory.numel() // self.num_bytes(num_envs))]


def require_memory(num_bytes: int) -> None:
    """Raises ConfigError if a batch of `num_bytes` exceeds this machine's memory."""
    installed = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if num_bytes > installed:
        raise ConfigError(
            f"a batch takes {num_bytes >> 20:,} MiB, this machine has {installed >> 20:,} MiB: lower batch_size or "
            "unroll_length, or make the observations smaller with a wrapper"
        )


def write_row(target: NDArray[Any], row: NDArray[Any]) -> None:
    """Copies an observation leaf [B, *row_shape] of an environment into a row of a block."""
    if target.flags.c_contiguous:
        target[...] = row
        return
    # The stack is interleaved. Copying it at once takes four times as long, because numpy would access it in jumps.
    for frame in range(target.shape[1]):
        target[:, frame] = row[:, frame]


def copy_columns(source: Rollout, columns: list[int], target: Rollout, at: int) -> None:
    """Copies `columns` of `source`, at least one, in ascending order, to those of `target` from `at` on."""
    first, end = columns[0], columns[-1] + 1
    chosen = slice(first, end) if end - first == len(columns) else columns  # a list would copy twice
    map_tensors(lambda new, old: new[:, at : at + len(columns)].copy_(old[:, chosen]), target, source)


def _allocate_leaf(leaf: Leaf, rows: tuple[int, int], interleaved: bool, allocate: Allocate) -> Tensor:
    """Returns a tensor [*rows, *row_shape], with frames innermost in memory if interleaved."""
    if not interleaved:
        return allocate((*rows, *leaf.row_shape), getattr(torch, leaf.dtype))
    num_frames, *frame = leaf.row_shape
    return allocate((*rows, *frame, num_frames), getattr(torch, leaf.dtype)).movedim(-1, len(rows))


def _aligned(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT
