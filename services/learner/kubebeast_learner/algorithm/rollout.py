"""A batch of unrolls as tensors: what the learner trains on."""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from kubebeast_learner.distributions import ActionDistribution
from kubebeast_learner.models import CoreState, Model, ModelInputs

if TYPE_CHECKING:
    from kubebeast_native import RolloutBatch


@dataclass(frozen=True, kw_only=True, slots=True)
class Rollout:
    """B unrolls of T transitions. Row t + 1 holds what action t led to; row T only bootstraps."""

    observation: tuple[Tensor, ...]
    """One tensor a leaf, [T+1, B, *row_shape], of the leaf's dtype; where there is a frame_index, the single frames of
    a stack, each once, [R, B, *shape].
    """
    rewards: Tensor
    """float32 [T+1, B]: received on arrival at the row, not clipped."""
    terminated: Tensor
    """bool [T+1, B]: the episode ended at the row by its own rules."""
    truncated: Tensor
    """bool [T+1, B]: the episode was cut off at the row."""
    is_first: Tensor
    """bool [T+1, B]: an episode starts with the row."""
    last_action: Tensor
    """[T+1, B, *action_shape]: the action that led to the row, zeros where is_first."""
    action: Tensor
    """[T, B, *action_shape]; int64 [T, B] of one Discrete choice, float32 [T, B, K] of every other space."""
    policy_logits: Tensor
    """float32 [T, B, A]: the behaviour policy that chose `action`."""
    valid: Tensor
    """bool [T, B]: transition t joins two rows of one episode; false in padding too."""
    policy_version: Tensor
    """int64 [T, B]: version of the weights that chose `action`."""
    core_state: CoreState
    """Tensors [num_layers, B, size], or (): before row 0, its is_first not yet applied."""
    distribution: ActionDistribution
    """What policy_logits mean: log-probabilities and entropies of the actions."""
    task: Tensor | None = None
    """int64 [1, B]: the task of each unroll, its place in task_shares; None where there is one task."""
    value_scale: Tensor | None = None
    """float32 [1, B]: what the errors of values and the advantages of an unroll are divided by; None: by nothing."""
    frame_index: tuple[Tensor, ...] = ()
    """() where stacks are whole, else for each leaf int32 [T+1, B, k]: the rows of `observation`, in the same column,
    that make up a stack, oldest first; k = 0 for leaves that are no stack.
    """
    num_replayed: int = 0
    """The last unrolls of the batch that were trained on before."""

    @property
    def unroll_length(self) -> int:
        return self.action.shape[0]

    @property
    def batch_size(self) -> int:
        return self.action.shape[1]

    @property
    def model_inputs(self) -> ModelInputs:
        """All T+1 rows, whose stacks must be whole."""
        task = None if self.task is None else self.task.expand_as(self.is_first)
        return ModelInputs(self.observation, self.rewards, self.last_action, self.is_first, task)

    @property
    def num_fresh_transitions(self) -> int:
        """Valid transitions that were not replayed."""
        return int(self.valid[:, : self.batch_size - self.num_replayed].sum())

    def steps_of_tasks(self, num_tasks: int) -> list[int]:
        """Valid transitions of each task that were not replayed; none where the rollout tells no tasks."""
        if self.task is None:
            return []
        fresh = slice(self.batch_size - self.num_replayed)
        steps = self.valid[:, fresh].sum(dim=0)
        return steps.new_zeros(num_tasks).index_add_(0, self.task[0, fresh], steps).tolist()

    def to(self, device: torch.device | str) -> "Rollout":
        """On `device`: itself on a CPU; to a GPU in asynchronous copies on the current stream, from pinned memory."""
        device = torch.device(device)
        return self if device.type != "cuda" else map_tensors(lambda tensor: to_device(tensor, device), self)

    def stacked(self) -> "Rollout":
        """With whole stacks, made where the frames are; itself where it has them already."""
        if not self.frame_index:
            return self
        pairs = zip(self.observation, self.frame_index, strict=True)
        whole = tuple(_stack(frames, index) if index.shape[2] else frames for frames, index in pairs)
        return replace(self, observation=whole, frame_index=())


def _stack(frames: Tensor, index: Tensor) -> Tensor:
    """[T+1, B, k, *shape] of the frames [R, B, *shape] that the index [T+1, B, k] chooses."""
    columns = torch.arange(index.shape[1], device=index.device).unsqueeze(1)
    return frames[index.long(), columns]


def map_tensors(function: Callable[..., Tensor], rollout: Rollout, *others: Rollout, **changes: Any) -> Rollout:
    """A rollout of function(tensor, *its namesakes in others) for every tensor of `rollout`.

    Unrolls lie along dimension 1 of every tensor, core_state's among them. changes: other fields by name.
    """
    values: dict[str, Any] = {}
    for field in fields(Rollout):
        value, *namesakes = (getattr(each, field.name) for each in (rollout, *others))
        if isinstance(value, tuple):
            values[field.name] = tuple(map(function, value, *namesakes))
        else:
            values[field.name] = function(value, *namesakes) if isinstance(value, Tensor) else value
    return Rollout(**values | changes)


def rollout_from_native(batch: "RolloutBatch", model: Model) -> Rollout:
    """The native batch for `model`, whose core_state it holds: on the CPU, views of native memory."""
    distribution = model.distribution
    observation, frame_index = (tuple(map(torch.from_numpy, each)) for each in (batch.observation, batch.frame_index))
    return Rollout(
        observation=observation if frame_index else model.with_frames_first(observation, axis=2),
        frame_index=frame_index,
        rewards=torch.from_numpy(batch.rewards),
        terminated=torch.from_numpy(batch.terminated),
        truncated=torch.from_numpy(batch.truncated),
        is_first=torch.from_numpy(batch.is_first),
        last_action=distribution.from_leaves(batch.last_actions),
        action=distribution.from_leaves(batch.actions),
        policy_logits=torch.from_numpy(batch.policy_logits),
        valid=torch.from_numpy(batch.valid),
        policy_version=torch.from_numpy(batch.policy_version),
        core_state=model.unpack_core_state(torch.from_numpy(batch.core_state)) if model.core_state_size else (),
        distribution=distribution,
        task=torch.from_numpy(batch.task).unsqueeze(0) if model.num_tasks > 1 else None,
    )


def to_device(source: NDArray[np.generic] | Tensor, device: torch.device) -> Tensor:
    """A writable array or a tensor on `device`: the same memory on a CPU, an asynchronous pinned copy on a GPU, unless
    it is there already.
    """
    tensor = torch.as_tensor(source)
    if device.type != "cuda":
        return tensor
    return (tensor if tensor.is_cuda else tensor.pin_memory()).to(device, non_blocking=True)


def to_host(*tensors: Tensor) -> list[Tensor]:
    """The tensors on the CPU, C-contiguous: where they are already, the same memory; from a GPU in copies that are
    waited for together, once.
    """
    copies = [tensor.detach().contiguous().to("cpu", non_blocking=True) for tensor in tensors]
    for device in {tensor.device for tensor in tensors if tensor.is_cuda}:
        torch.cuda.current_stream(device).synchronize()
    return copies
