"""The core states of the environments between their steps."""

import torch
from torch import Tensor

from kubebeast_learner.actors.frame_table import NO_SLOT
from kubebeast_learner.models import Model, ModelInputs, ModelOutput


class CoreStateTable:
    """The core_state of every slot, and of NO_SLOT: float32 [1 + max_envs, core_state_size].

    Workers share it: a slot is in one batch at a time. Rows of a new episode are zeroed by the model, not here.
    """

    def __init__(self, model: Model, max_envs: int, device: torch.device | str = "cpu") -> None:
        """device: device of the workers. If they use several devices, it must be the CPU: a state on it is complete
        before another worker gets the slot.
        """
        self._unpack, self._pack = model.unpack_core_state, model.pack_core_state
        self.device = torch.device(device)
        self._states = torch.zeros(1 + max_envs, model.core_state_size, device=device)

    def step(self, model: Model, inputs: ModelInputs, slots: Tensor) -> tuple[ModelOutput, Tensor]:
        """Runs the model on rows [1, N] and stores their new states; also returns the states before, [N, S].

        slots: int64 [N], on the device of the table, as the returned states.
        """
        places = slots - NO_SLOT
        before = self._states[places]
        output, core_state = model(inputs, self._unpack(before.to(inputs.reward.device)))
        # An observation too large for the weights spoils its own row, not all rows to the episode's end.
        packed = self._pack(core_state).nan_to_num(nan=0.0, posinf=0.0, neginf=0.0)
        self._states[places] = packed.to(self.device)
        return output, before
