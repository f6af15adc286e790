"""Batches of unrolls as tensors, on which the learner trains."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from kubebeast_learner.distributions import ActionDistribution
from kubebeast_learner.machine.packed_tensors import upload_together
from kubebeast_learner.models import CoreState, Model, ModelInputs

if TYPE_CHECKING:
    from kubebeast_native import RolloutBatch


@dataclass(frozen=True, kw_only=True, slots=True)
class Rollout:
    """B unrolls of T transitions. Row t + 1 holds the result of action t; row T only bootstraps."""

    observation: tuple[Tensor, ...]
    """One tensor per leaf, [T+1, B, *row_shape], in the leaf's dtype; if there is a frame_index, the single frames of
    a stack, each once, [R, B, *shape].
    """
    rewards: Tensor
    """float32 [T+1, B]: reward received on arrival at the row, not clipped."""
    terminated: Tensor
    """bool [T+1, B]: True if the episode ended at the row by its own rules."""
    truncated: Tensor
    """bool [T+1, B]: True if the episode was cut off at the row."""
    is_first: Tensor
    """bool [T+1, B]: True if an episode starts with the row."""
    last_action: Tensor
    """[T+1, B, *action_shape]: action that led to the row, as the environment took it, zeros if is_first."""
    action: Tensor
    """[T, B, *action_shape]: action as drawn; int64 [T, B] for one Discrete choice, float32 [T, B, K] for every other
    space, before tanh if that bounds it."""
    policy_logits: Tensor
    """float32 [T, B, A]: logits of the behavior policy that chose `action`."""
    valid: Tensor
    """bool [T, B]: True if transition t joins two rows of one episode; false also in padding."""
    policy_version: Tensor
    """int64 [T, B]: version of the weights that chose `action`."""
    core_state: CoreState
    """Tensors [num_layers, B, size], or (): state before row 0, to which is_first of that row is not yet applied."""
    distribution: ActionDistribution
    """The distribution that policy_logits parametrize: log-probabilities and entropies of the actions."""
    task: Tensor | None = None
    """int64 [1, B]: index in task_shares of each unroll's task; None if there is one task."""
    value_scale: Tensor | None = None
    """float32 [1, B]: divisor of the value errors and the advantages of an unroll; None is 1."""
    frame_index: tuple[Tensor, ...] = ()
    """() if stacks are whole, else for each leaf int32 [T+1, B, k]: the rows of `observation`, in the same column,
    that make up a stack, oldest first; k = 0 for leaves that are not stacks.
    """
    value_targets: Tensor | None = None
    """float32 [T, B]: v_t, if it was made before the minibatch; None if the loss makes it."""
    advantages: Tensor | None = None
    """float32 [T, B]: r_t + gamma_t v_{t+1} - V(x_t), without an importance weight; None as value_targets."""
    origin: Tensor | None = None
    """int64 [3, B], only on the CPU: number of the stream that played each unroll, place of its environment in the
    stream, number of the unroll in the stream; row T of an unroll is row 0 of the next number. None if it is unknown.
    """
    is_minibatch: bool = False
    """True if the rollout is a part of a batch."""
    num_replayed: int = 0
    """Number of unrolls at the end of the batch that were trained on before."""

    @property
    def unroll_length(self) -> int:
        return self.action.shape[0]

    @property
    def batch_size(self) -> int:
        return self.action.shape[1]

    @property
    def fresh(self) -> slice:
        """The unrolls that were not replayed."""
        return slice(self.batch_size - self.num_replayed)

    @property
    def model_inputs(self) -> ModelInputs:
        """All T+1 rows as inputs of a model; stacks must be whole."""
        task = None if self.task is None else self.task.expand_as(self.is_first)
        return ModelInputs(self.observation, self.rewards, self.last_action, self.is_first, task)

    @property
    def num_fresh_transitions(self) -> int:
        """Number of valid transitions that were not replayed."""
        return int(self.valid[:, self.fresh].sum())

    def steps_of_tasks(self, num_tasks: int) -> list[int]:
        """Returns the number of valid transitions, not replayed, of each task; [] if the rollout has no tasks."""
        if self.task is None:
            return []
        steps = self.valid[:, self.fresh].sum(dim=0)
        return steps.new_zeros(num_tasks).index_add_(0, self.task[0, self.fresh], steps).tolist()

    def to(self, device: torch.device | str) -> "Rollout":
        """Returns the rollout on `device`: itself on a CPU, else one asynchronous pinned copy on the current stream."""
        device, tensors = torch.device(device), tensors_of(self)
        if device.type != "cuda" or all(tensor.is_cuda for tensor in tensors):
            return self
        copies = iter(upload_together(tensors, device))
        return map_tensors(lambda _: next(copies), self)

    def stacked(self) -> "Rollout":
        """Returns the rollout with whole stacks, made on the device of the frames; itself if it already has them."""
        if not self.frame_index:
            return self
        pairs = zip(self.observation, self.frame_index, strict=True)
        whole = tuple(_stack(frames, index) if index.shape[2] else frames for frames, index in pairs)
        return replace(self, observation=whole, frame_index=())


def _stack(frames: Tensor, index: Tensor) -> Tensor:
    """Returns the frames, of [R, B, *shape], that the index [T+1, B, k] selects: [T+1, B, k, *shape]."""
    columns = torch.arange(index.shape[1], device=index.device).unsqueeze(1)
    return frames[index.long(), columns]


def map_tensors(function: Callable[..., Tensor], rollout: Rollout, *others: Rollout, **changes: Any) -> Rollout:
    """Returns a rollout of function(tensor, *its namesakes in others) for every tensor of `rollout`.

    Unrolls lie along dimension 1 of every tensor, including those of core_state. changes: other fields by name.
    """
    values: dict[str, Any] = {}
    for field in fields(Rollout):
        value, *namesakes = (getattr(each, field.name) for each in (rollout, *others))
        if isinstance(value, tuple):
            values[field.name] = tuple(map(function, value, *namesakes))
        else:
            values[field.name] = function(value, *namesakes) if isinstance(value, Tensor) else value
    return Rollout(**values | changes)


def tensors_of(rollout: Rollout) -> list[Tensor]:
    """Returns all tensors of `rollout`, in the order of its fields."""
    values = [getattr(rollout, field.name) for field in fields(rollout)]
    tensors = [each for value in values for each in (value if isinstance(value, tuple) else (value,))]
    return [each for each in tensors if isinstance(each, Tensor)]


def layout_of(rollout: Rollout) -> Hashable:
    """Returns a key that is equal for rollouts for which the same compiled code, or graph, can be used."""
    layouts = tuple((each.dtype, each.shape, each.stride()) for each in tensors_of(rollout))
    return layouts, rollout.num_replayed, rollout.is_minibatch


def rollout_from_native(batch: "RolloutBatch", model: Model) -> Rollout:
    """Returns the native batch, which holds core_state of `model`, as views of native memory on the CPU."""
    distribution = model.distribution
    action, record = distribution.from_leaves(batch.actions), torch.from_numpy(batch.policy_logits)
    policy_logits, drawn = distribution.recall(record, action)
    observation, frame_index = (tuple(map(torch.from_numpy, each)) for each in (batch.observation, batch.frame_index))
    return Rollout(
        observation=observation if frame_index else model.with_frames_first(observation, axis=2),
        frame_index=frame_index,
        rewards=torch.from_numpy(batch.rewards),
        terminated=torch.from_numpy(batch.terminated),
        truncated=torch.from_numpy(batch.truncated),
        is_first=torch.from_numpy(batch.is_first),
        last_action=distribution.from_leaves(batch.last_actions),
        action=drawn,
        policy_logits=policy_logits,
        valid=torch.from_numpy(batch.valid),
        policy_version=torch.from_numpy(batch.policy_version),
        core_state=model.unpack_core_state(torch.from_numpy(batch.core_state)) if model.core_state_size else (),
        distribution=distribution,
        task=torch.from_numpy(batch.task).unsqueeze(0) if model.num_tasks > 1 else None,
        origin=torch.from_numpy(batch.origin),
    )


def to_device(source: NDArray[np.generic] | Tensor, device: torch.device) -> Tensor:
    """Returns a writable array or a tensor on `device`: the same memory on a CPU, an asynchronous pinned copy on a GPU
    unless it is already there.
    """
    tensor = torch.as_tensor(source)
    if device.type != "cuda":
        return tensor
    return (tensor if tensor.is_cuda else tensor.pin_memory()).to(device, non_blocking=True)


def to_host(*tensors: Tensor) -> list[Tensor]:
    """Returns the tensors on the CPU, C-contiguous: the same memory if they are already there; copies from a GPU are
    waited for together, once.
    """
    copies = [tensor.detach().contiguous().to("cpu", non_blocking=True) for tensor in tensors]
    for device in {tensor.device for tensor in tensors}:
        wait_for_stream(device)
    return copies


def wait_for_stream(device: torch.device) -> None:
    """Waits for the work on the current stream of a GPU, without using a core meanwhile."""
    if device.type == "cuda":
        event = torch.cuda.Event(blocking=True)  # type: ignore[no-untyped-call]
        event.record(torch.cuda.current_stream(device))
        event.synchronize()
