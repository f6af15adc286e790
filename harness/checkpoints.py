"""Check of the checkpoints of a run: a run can resume from healthy ones."""

from pathlib import Path
from typing import Any, NamedTuple

import torch


class Checkpoints(NamedTuple):
    healthy: list[int]
    """Steps of the checkpoints that can be read and contain only finite numbers, oldest first."""
    unhealthy: list[str]
    """File names of the others."""


def examine(folder: Path) -> Checkpoints:
    """Examines the checkpoints of the run in `folder`, which must not change meanwhile."""
    healthy, unhealthy = [], []
    for path in sorted(folder.glob("checkpoint-*.pt")):
        try:
            state = torch.load(path, weights_only=True)
            is_finite = _is_finite(state)
        except Exception:  # torch.load raises many kinds of errors
            is_finite = False
        if is_finite:
            healthy.append(int(state["step"]))
        else:
            unhealthy.append(path.name)
    return Checkpoints(healthy, unhealthy)


def _is_finite(value: Any) -> bool:
    """Returns True if all tensors in the value, at any depth, are finite."""
    if isinstance(value, torch.Tensor):
        return bool(value.isfinite().all())
    if isinstance(value, dict):
        return all(map(_is_finite, value.values()))
    return all(map(_is_finite, value)) if isinstance(value, list | tuple) else True
