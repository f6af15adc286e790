"""Sizes of rows and models, computed before anything is allocated."""

import math
from collections.abc import Callable, Sequence

import numpy as np
import torch

from kubebeast_common.spec.leaves import LeafSpec, describe_leaf
from kubebeast_learner.errors import ModelSpecError
from kubebeast_learner.models.base import Model

MAX_NUMBERS = 1 << 28
"""Most numbers that a leaf of a row may become in a network, with one-hot categories: 1 GiB of float32. Its product
with the size of a layer does not overflow."""


def check_sizes(observation: Sequence[LeafSpec], action: Sequence[LeafSpec]) -> None:
    """Raises ModelSpecError if a leaf becomes more than MAX_NUMBERS, or if the observation has no element."""
    for kind, leaves in (("observation", observation), ("action", action)):
        for leaf in leaves:
            numbers = num_elements(leaf) * max(1, leaf.num_categories)
            if numbers > MAX_NUMBERS:
                raise ModelSpecError(
                    f"the {kind} leaf {describe_leaf(leaf)} becomes {numbers:,} numbers, at most {MAX_NUMBERS:,}"
                )
    inputs = [leaf for leaf in observation if not leaf.is_action_mask]
    if inputs and not any(map(num_elements, inputs)):
        raise ModelSpecError(f"the observation has no element: {', '.join(map(describe_leaf, inputs))}")


def num_elements(leaf: LeafSpec) -> int:
    """Returns the number of elements of a row with its whole stack."""
    return math.prod(leaf.row_shape)


def row_bytes(observation: Sequence[LeafSpec]) -> int:
    """Returns the number of bytes of a stored observation."""
    return sum(num_elements(leaf) * np.dtype(leaf.dtype).itemsize for leaf in observation)


def model_bytes(make: Callable[[], Model]) -> tuple[int, int]:
    """Returns the bytes of a model's weights and buffers, and of one environment's core state, without allocating them.

    make: builds the model, with allocations by torch only. Leaves torch's global generator unchanged.
    """
    with torch.random.fork_rng(devices=[]), torch.device("meta"):
        model = make()
    tensors = [*model.parameters(), *model.buffers()]
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors), 4 * model.core_state_size
