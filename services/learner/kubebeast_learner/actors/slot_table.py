"""Tables with a row for each slot of the pool."""

import threading
from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from kubebeast_learner.actors.batch_rows import BatchRows
    from kubebeast_native import InferenceBatch

NO_SLOT = -1
"""Slot of rows that are padding; tables of slots have a place for it."""


class SlotTable:
    """Tensors with a row for every slot, and for NO_SLOT. Thread-safe.

    They grow with the slots in use: memory of a GPU is taken at once, and few runs have as many environments as the
    pool allows.
    """

    def __init__(self, tensors: list[Tensor]) -> None:
        """tensors: [1 + slots, ...] each, on one device."""
        self._tensors = tensors
        self.device = tensors[0].device
        self.lock = threading.Lock()
        """Held by the thread that starts work on the table, so that no other one moves it."""
        self._wait_for_all_streams()  # other threads' streams read what this one's has filled

    def __len__(self) -> int:
        """Number of slots with room in the table."""
        return len(self._tensors[0]) - 1

    def has_room(self, batch: "InferenceBatch | BatchRows") -> bool:
        """Returns True if `make_room` has nothing to do."""
        return int(batch.slots.max()) < len(self)

    def make_room(self, batch: "InferenceBatch | BatchRows") -> None:
        """Moves the table, after waiting for the device, if it has no room for the slots of a batch. Needs the lock."""
        num_slots = int(batch.slots.max()) + 1
        if num_slots <= len(self):
            return
        added = max(num_slots, 2 * len(self)) - len(self)
        self._wait_for_all_streams()  # other threads' streams may still write to the source
        replaced = self._tensors  # memory that another stream gets as soon as it is free
        self._tensors = [torch.cat([each, each.new_zeros(added, *each.shape[1:])]) for each in replaced]
        self._wait_for_all_streams()  # and go on with the copies
        del replaced

    def _wait_for_all_streams(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
