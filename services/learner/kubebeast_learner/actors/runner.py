"""A step of the model for a batch of rows, operation by operation: actions with what the rollouts keep of them."""

from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor

from kubebeast_learner.actors.batch_rows import BatchRows
from kubebeast_learner.actors.core_states import CoreStateTable
from kubebeast_learner.actors.frame_table import FrameTable
from kubebeast_learner.algorithm.rollout import to_device, to_host
from kubebeast_learner.machine.cuda_graph import eager
from kubebeast_learner.models import Model, ModelInputs

if TYPE_CHECKING:
    from kubebeast_native import InferenceBatch


class Answer(NamedTuple):
    """The model's answer to N rows."""

    action: Tensor
    """[N, *action_shape], as environments receive it."""
    record: Tensor
    """float32 [N, record_size]; see ActionDistribution.record."""
    baseline: Tensor
    """float32 [N]."""
    core_state: Tensor | None
    """float32 [N, S]: states before the rows, None without a recurrent core. On the host, those of unroll starts."""


class Runner(Protocol):
    """A way of running the model. Belongs to one thread."""

    def run(self, batch: "InferenceBatch", model: Model, version: int) -> Answer:
        """Returns the answer to the rows of `batch` on the host, after waiting for the device; the next call may reuse
        its memory.

        model, version: a replica on the device, unchanged until this returns, and the version of its weights.
        """


class EagerRunner:
    """Runs the model on batches of any size. Implements Runner."""

    def __init__(
        self,
        device: torch.device,
        generator: torch.Generator,
        core_states: CoreStateTable | None = None,
        frames: FrameTable | None = None,
    ) -> None:
        """generator: source of the action sampling, on `device`."""
        self._device, self._generator = device, generator
        self._core_states, self._frames = core_states, frames

    def run(self, batch: "InferenceBatch | BatchRows", model: Model, version: int) -> Answer:
        """See `Runner.run`; the memory of the answer is its own."""
        with eager(self._device):
            return self._run(batch, model)

    def _run(self, batch: "InferenceBatch | BatchRows", model: Model) -> Answer:
        inputs, states = self._inputs(batch, model), self._core_states
        if states is None:
            answer = act(model, inputs, self._generator)
        else:
            slots = to_device(batch.slots, states.device).long()
            with states.with_room(batch):
                answer = act(model, inputs, self._generator, states, slots)
        if answer.core_state is None:
            action, record, baseline = to_host(*answer[:3])
            return Answer(action, record, baseline, None)
        return Answer(*to_host(*answer[:3], states_at_starts(answer.core_state, batch)))

    def _inputs(self, batch: "InferenceBatch | BatchRows", model: Model) -> ModelInputs:
        last_action = model.distribution.from_leaves(batch.last_actions)
        return ModelInputs(
            observation=self._observation(batch, model),
            reward=to_device(batch.rewards, self._device).unsqueeze(0),
            last_action=to_device(last_action, self._device).unsqueeze(0),
            is_first=to_device(batch.is_first, self._device).unsqueeze(0),
            task=to_device(batch.task, self._device).unsqueeze(0) if model.num_tasks > 1 else None,
        )

    def _observation(self, batch: "InferenceBatch | BatchRows", model: Model) -> tuple[Tensor, ...]:
        if self._frames is not None:
            assert not isinstance(batch, BatchRows), "single frames are of whole batches"
            return tuple(leaf.unsqueeze(0) for leaf in self._frames.observe(batch))
        leaves = (to_device(leaf, self._device).unsqueeze(0) for leaf in batch.observation)
        return model.with_frames_first(leaves, axis=2)


def act(
    model: Model,
    inputs: ModelInputs,
    generator: torch.Generator,
    core_states: CoreStateTable | None = None,
    slots: Tensor | None = None,
) -> Answer:
    """Runs the model on rows [1, N] and draws actions; all on the device, without waiting for it.

    slots: int64 [N], required by a recurrent core.
    """
    before = None
    if core_states is None or slots is None:
        output, _ = model(inputs, ())
    else:
        output, before = core_states.step(model, inputs, slots)
    policy_logits = output.policy_logits[0]
    drawn = model.distribution.sample(policy_logits, generator)
    record = model.distribution.record(policy_logits, drawn)
    return Answer(model.distribution.squashed(drawn), record, output.baseline[0], before)


def states_at_starts(core_state: Tensor, batch: "InferenceBatch | BatchRows") -> Tensor:
    """Returns the states of the rows that start an unroll, [num_starts, S], of those of all rows, [N, S]."""
    # By index, not by a mask: the number of rows in a mask would have to be read from a GPU.
    starts = to_device(np.flatnonzero(batch.unroll_start), core_state.device)
    return core_state.index_select(0, starts)
