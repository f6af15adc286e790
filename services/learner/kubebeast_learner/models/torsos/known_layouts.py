"""Axes of images that are ambiguous by shape but known from the library."""

from collections.abc import Sequence
from dataclasses import replace

from kubebeast_common.ids.env_id import parse_env_id
from kubebeast_common.spec.leaves import LeafSpec
from kubebeast_learner.config import ModelConfig

LAYOUTS = {"MinAtar": "hwc"}
"""Axes by namespace of environment ids. MinAtar's Seaquest has 10 channels of 10 x 10 cells (arXiv:1903.03176)."""


def with_known_layout(config: ModelConfig, env_id: str, observation: Sequence[LeafSpec]) -> ModelConfig:
    """Returns `config`, with an image_layout if the user gives none and the only leaf is an ambiguous image."""
    axes = LAYOUTS.get(parse_env_id(env_id).namespace)
    if axes is None or config.image_layout or config.encoder or config.model == "mlp" or ":" in config.model:
        return config
    is_cube = (
        len(observation) == 1 and len(observation[0].row_shape) == len(axes) and len(set(observation[0].shape)) == 1
    )
    return replace(config, image_layout=(f".={axes}",)) if is_cube else config
