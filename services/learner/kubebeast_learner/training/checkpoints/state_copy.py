"""Copies of a training's state, which are saved while the training goes on."""

import threading
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from kubebeast_learner.models.finite import named_tensors


class StateCopy:
    """A copy of the tensors in a state, in memory of the host that is kept for the next one: to map fresh memory takes
    several times as long as to fill it. Not thread-safe.
    """

    def __init__(self) -> None:
        self._kept: dict[str, Tensor] = {}
        self._mapping: threading.Thread | None = None

    def is_ready(self, state: Mapping[str, Any]) -> bool:
        """Returns True if there is memory for a copy of `state`; otherwise, a thread maps it meanwhile."""
        if self._mapping is not None and self._mapping.is_alive():
            return False
        missing = {path: tensor for path, tensor in named_tensors(state) if not _fits(self._kept.get(path), tensor)}
        if not missing:
            return True
        self._mapping = threading.Thread(target=self._map, args=(missing,), name="checkpoint-memory", daemon=True)
        self._mapping.start()
        return False

    def take(self, state: Mapping[str, Any]) -> dict[str, Any]:
        """Returns a state with copies of all tensors and containers, which is valid until the next call.

        Tensors of the same memory share a copy, as in a file. Waits for the devices of the tensors. `is_ready` must
        have returned True for this state.
        """
        with torch.no_grad():
            copied: dict[str, Any] = self._copied(state, "", {})
        return copied

    def _copied(self, value: Any, path: str, shared: dict[tuple[object, ...], Tensor]) -> Any:
        if isinstance(value, Mapping):
            return {name: self._copied(each, _join(path, name), shared) for name, each in value.items()}
        if isinstance(value, list | tuple):
            return type(value)(self._copied(each, _join(path, index), shared) for index, each in enumerate(value))
        if not isinstance(value, Tensor):
            return value
        key = value.device, value.data_ptr(), value.dtype, value.shape, value.stride()
        if key not in shared or value.numel() == 0:
            shared[key] = self._kept[path].copy_(value)
        return shared[key]

    def _map(self, tensors: Mapping[str, Tensor]) -> None:
        """Allocates memory for the tensors and touches it."""
        torch.set_num_threads(torch.get_num_threads())  # OpenMP keeps this number for each thread
        self._kept |= {path: torch.zeros_like(tensor, device="cpu") for path, tensor in tensors.items()}


def _join(path: str, key: object) -> str:
    """Returns the path of a part, as named_tensors does."""
    return f"{path}.{key}" if path else str(key)


def _fits(kept: Tensor | None, tensor: Tensor) -> bool:
    return kept is not None and kept.dtype == tensor.dtype and kept.shape == tensor.shape
