"""The core states of the environments between their steps."""

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from kubebeast_learner.actors.slot_table import NO_SLOT, SlotTable
from kubebeast_learner.models import Model, ModelInputs, ModelOutput

if TYPE_CHECKING:
    from kubebeast_learner.actors.batch_rows import BatchRows
    from kubebeast_native import InferenceBatch

_FIRST_SLOTS = 64
"""Slots with room at first on a GPU."""


class CoreStateTable(SlotTable):
    """The core_state of every slot, and of NO_SLOT: float32 [1 + slots, core_state_size].

    Workers share it: a slot is in one batch at a time. Rows of a new episode are zeroed by the model, not here.
    """

    def __init__(self, model: Model, max_envs: int, device: torch.device | str = "cpu") -> None:
        """device: device of the workers. If they use several devices, it must be the CPU: a state on it is complete
        before another worker gets the slot.
        """
        self._unpack, self._pack = model.unpack_core_state, model.pack_core_state
        self._grows = torch.device(device).type == "cuda"  # memory of a CPU is taken with the first use of a row
        num_slots = min(_FIRST_SLOTS, max_envs) if self._grows else max_envs
        super().__init__([torch.zeros(1 + num_slots, model.core_state_size, device=device)])

    @contextlib.contextmanager
    def with_room(self, batch: "InferenceBatch | BatchRows") -> Iterator[None]:
        """Context in which the table has room for the slots of a batch, and does not move."""
        if not self._grows:
            yield
            return
        with self.lock:
            self.make_room(batch)
            yield

    def step(self, model: Model, inputs: ModelInputs, slots: Tensor) -> tuple[ModelOutput, Tensor]:
        """Runs the model on rows [1, N] and stores their new states; also returns the states before, [N, S].

        slots: int64 [N], on the device of the table, as the returned states. Needs room for them.
        """
        (states,) = self._tensors
        places = slots - NO_SLOT
        before = states[places]
        output, core_state = model(inputs, self._unpack(before.to(inputs.reward.device)))
        # An observation too large for the weights spoils its own row, not all rows to the episode's end.
        packed = self._pack(core_state).nan_to_num(nan=0.0, posinf=0.0, neginf=0.0)
        states[places] = packed.to(self.device)
        return output, before
