"""Stacks of frames for inference, made on the device from frames that are transferred once each."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from kubebeast_common.spec.leaves import LeafSpec
from kubebeast_learner.actors.slot_table import NO_SLOT, SlotTable
from kubebeast_learner.algorithm.rollout import to_device

if TYPE_CHECKING:
    from kubebeast_native import InferenceBatch


def takes_single_frames(learner: torch.device, inference: Sequence[torch.device]) -> bool:
    """Returns True if the native pool should send each frame once, for stacks made on the device.

    That saves three quarters of the bytes of stacks of four on a GPU's bus and in host memory; on a CPU the pool makes
    the stacks fastest. Several inference devices would need each other's newest frames.
    """
    return learner.type == "cuda" and [device.type for device in inference] == ["cuda"]


class FrameTable(SlotTable):
    """The newest frames of every slot, and of NO_SLOT, for each leaf that is a stack of k. Thread-safe.

    A slot is in one batch at a time, and free again after the answer to its batch, which waits for a GPU; the first
    row of an episode brings its whole stack. So a slot can pass to another environment without notice.
    """

    def __init__(self, observation: Sequence[LeafSpec], device: torch.device) -> None:
        self._stacked = [index for index, leaf in enumerate(observation) if leaf.frame_stack > 1]
        rings = [
            torch.zeros(1, *observation[index].row_shape, dtype=getattr(torch, observation[index].dtype), device=device)
            for index in self._stacked
        ]
        super().__init__([torch.zeros(1, dtype=torch.int64, device=device), *rings])

    @property
    def _steps(self) -> Tensor:
        """[1 + slots]: steps since the first row of the episode; modulo k, the index of the oldest frame."""
        return self._tensors[0]

    @property
    def _rings(self) -> list[Tensor]:
        """[1 + slots, k, *shape] per stacked leaf; a slot's newest frame replaces its oldest one."""
        return self._tensors[1:]

    def observe(self, batch: "InferenceBatch") -> list[Tensor]:
        """Returns the observation of a batch of single frames on the device, [N, *row_shape] per leaf; keeps them.

        Asynchronous on a GPU, on the current stream; waits for the GPU if a slot lies beyond all earlier ones.
        """
        with self.lock:
            self.make_room(batch)
            self.begin_episodes(batch)
            slots, is_first = to_device(batch.slots, self.device).long(), to_device(batch.is_first, self.device)
            return self.advance(slots, is_first, [to_device(leaf, self.device) for leaf in batch.observation])

    def begin_episodes(self, batch: "InferenceBatch") -> None:
        """Takes the stacks that begin episodes in a batch, before `advance`. Needs the lock."""
        if not batch.is_first.any():
            return
        first = to_device(batch.slots[batch.is_first], self.device).long() - NO_SLOT
        for index, ring in zip(self._stacked, self._rings, strict=True):
            ring[first] = to_device(batch.first_stacks[index], self.device)

    def advance(self, slots: Tensor, is_first: Tensor, newest: Sequence[Tensor]) -> list[Tensor]:
        """Keeps the newest frames of a batch and returns its stacks, [N, *row_shape] per leaf; other leaves unchanged.

        Its kernels depend on the number of rows alone. Needs the lock.

        Args:
            slots: int64 [N], on the device, as the others.
            is_first: bool [N].
            newest: [N, *shape] per leaf.
        """
        places, leaves = slots - NO_SLOT, list(newest)
        steps = torch.where(is_first, 0, self._steps[places] + 1)
        self._steps[places] = steps
        for index, ring in zip(self._stacked, self._rings, strict=True):
            k = ring.shape[1]
            ring[places, (steps - 1) % k] = leaves[index]  # in a first row, that is the newest frame of its stack
            oldest_first = (steps.unsqueeze(1) + torch.arange(k, device=self.device)) % k
            leaves[index] = ring[places.unsqueeze(1), oldest_first]
        return leaves
