"""Made-up inputs of an environment's shapes, for checks and measurements before real ones exist."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from kubebeast_common.spec.leaves import LeafSpec
from kubebeast_learner.distributions import ActionDistribution
from kubebeast_learner.models.base import ModelInputs


def dummy_inputs(
    observation: Sequence[LeafSpec],
    distribution: ActionDistribution,
    num_rows: int,
    batch_size: int,
    seed: int = 0,
    num_tasks: int = 1,
) -> ModelInputs:
    """Returns random rows [num_rows, batch_size] inside episodes; every category, byte and action may occur.

    Environment b plays task b % num_tasks. Integer leaves without categories have no row of zeros, so that a mask
    allows at least one action.
    """
    random = np.random.default_rng(seed)
    generator = torch.Generator().manual_seed(seed)
    shape = (num_rows, batch_size)
    return ModelInputs(
        observation=tuple(dummy_leaf(leaf, shape, random) for leaf in observation),
        reward=torch.from_numpy(random.standard_normal(shape, dtype=np.float32)),
        last_action=distribution.squashed(distribution.sample(torch.zeros(*shape, distribution.num_logits), generator)),
        is_first=torch.zeros(shape, dtype=torch.bool),
        task=(torch.arange(batch_size) % num_tasks).repeat(num_rows, 1) if num_tasks > 1 else None,
    )


def dummy_leaf(leaf: LeafSpec, rows: tuple[int, int], random: np.random.Generator) -> Tensor:
    """Returns random categories, bytes, 0s and 1s or standard normal floats [*rows, *row_shape] in the leaf's dtype."""
    shape, dtype = rows + tuple(leaf.row_shape), np.dtype(leaf.dtype)
    if dtype.kind == "f":
        return torch.from_numpy(random.standard_normal(shape).astype(dtype))
    num_values = leaf.num_categories or (256 if dtype == np.uint8 else 2)
    values = random.integers(num_values, size=shape, dtype=dtype.type).reshape(*rows, -1)
    if not leaf.num_categories and values.size:
        values[..., 0] += (values == 0).all(axis=-1)
    return torch.from_numpy(values.reshape(shape))
