"""Examples of users' networks and losses: some that keep the contract, and one for every mistake."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from kubebeast_learner.algorithm.losses import LossOutput, LossPart, impala_loss
from kubebeast_learner.algorithm.rollout import Rollout
from kubebeast_learner.config import LossConfig
from kubebeast_learner.models import CoreState, LeafSpec, ModelInputs, ModelOutput

SIZE = 6


class Good(nn.Module):
    """An Elman network with its hidden state as core state; the steps that the broken models override are methods."""

    def __init__(self, observation: Sequence[LeafSpec], num_actions: int) -> None:
        super().__init__()
        self.num_actions = num_actions
        self.input = nn.Linear(sum(leaf.row_shape[0] for leaf in observation), SIZE)
        self.recurrent = nn.Linear(SIZE, SIZE)
        self.policy = nn.Linear(SIZE, num_actions)
        self.baseline = nn.Linear(SIZE, 1)

    def initial_state(self, batch_size: int) -> Any:
        return (torch.zeros(1, batch_size, SIZE),)

    def forward(self, inputs: ModelInputs, core_state: CoreState) -> Any:
        features = self.encode(inputs)
        hidden, outputs = core_state[0][0], []
        for t in range(len(features)):
            hidden = self.step(features[t], self.reset(hidden, inputs.is_first, t))
            outputs.append(hidden)
        return self.heads(torch.stack(outputs)), (hidden.unsqueeze(0),)

    def encode(self, inputs: ModelInputs) -> Tensor:
        return torch.relu(self.input(torch.cat(inputs.observation, dim=-1)))

    def reset(self, hidden: Tensor, is_first: Tensor, t: int) -> Tensor:
        return hidden.masked_fill(is_first[t].unsqueeze(-1), 0.0)

    def step(self, features: Tensor, hidden: Tensor) -> Tensor:
        return torch.tanh(features + self.recurrent(hidden))

    def heads(self, hidden: Tensor) -> ModelOutput:
        return ModelOutput(self.policy(hidden), self.baseline(hidden).squeeze(-1))


class Sized(Good):
    """Has an option."""

    def __init__(self, observation: Sequence[LeafSpec], num_actions: int, policy_bias: float = 0.0) -> None:
        super().__init__(observation, num_actions)
        nn.init.constant_(self.policy.bias, policy_bias)


class Memoryless(Good):
    def initial_state(self, batch_size: int) -> Any:
        return ()

    def forward(self, inputs: ModelInputs, core_state: CoreState) -> Any:
        return self.heads(self.encode(inputs)), core_state


class Normed(Memoryless):
    """Has running statistics of its own, which a forward pass in training changes."""

    def __init__(self, observation: Sequence[LeafSpec], num_actions: int) -> None:
        super().__init__(observation, num_actions)
        self.norm = nn.BatchNorm1d(SIZE)

    def encode(self, inputs: ModelInputs) -> Tensor:
        features = super().encode(inputs)
        normed: Tensor = self.norm(features.flatten(0, 1))
        return normed.view_as(features)


class Causal(Memoryless):
    """Keeps a mask, as attention does."""

    def __init__(self, observation: Sequence[LeafSpec], num_actions: int) -> None:
        super().__init__(observation, num_actions)
        self.register_buffer("mask", torch.full((3, 3), -torch.inf).triu(1))


class TaskBiased(Memoryless):
    """Values have an offset for each of two tasks."""

    def __init__(self, observation: Sequence[LeafSpec], num_actions: int) -> None:
        super().__init__(observation, num_actions)
        self.offset = nn.Parameter(torch.tensor([-1.0, 1.0]))

    def forward(self, inputs: ModelInputs, core_state: CoreState) -> Any:
        output, core_state = super().forward(inputs, core_state)
        assert inputs.task is not None
        return output._replace(baseline=output.baseline + self.offset[inputs.task]), core_state


class Normalised(Memoryless):
    """Keeps statistics of the training batch in buffers that are sent with the weights."""

    def __init__(self, observation: Sequence[LeafSpec], num_actions: int) -> None:
        super().__init__(observation, num_actions)
        self.norm = nn.BatchNorm1d(SIZE)

    def encode(self, inputs: ModelInputs) -> Tensor:
        features = super().encode(inputs)
        return self.norm(features.flatten(0, 1)).view_as(features)  # type: ignore[no-any-return]


class Masked(Good):
    """Masks actions by the last leaf, a number for each: 0 masks."""

    def __init__(self, observation: Sequence[LeafSpec], num_actions: int) -> None:
        super().__init__(observation[:-1], num_actions)

    def encode(self, inputs: ModelInputs) -> Tensor:
        return torch.relu(self.input(torch.cat(inputs.observation[:-1], dim=-1)))

    def forward(self, inputs: ModelInputs, core_state: CoreState) -> Any:
        output, core_state = super().forward(inputs, core_state)
        mask = inputs.observation[-1] == 0
        return output._replace(policy_logits=output.policy_logits.masked_fill(mask, -torch.inf)), core_state


class MaskedWithoutMemory(Masked):
    """Forgets its state between calls, and masks."""

    def initial_state(self, batch_size: int) -> Any:
        return (torch.zeros(1, batch_size, SIZE),)

    def forward(self, inputs: ModelInputs, core_state: CoreState) -> Any:
        output, state = super().forward(inputs, core_state)
        return output, tuple(torch.zeros_like(tensor) for tensor in state)


class NanLogits(Good):
    def heads(self, hidden: Tensor) -> ModelOutput:
        output = super().heads(hidden)
        return output._replace(policy_logits=output.policy_logits.log())


class InfiniteBaseline(Good):
    def heads(self, hidden: Tensor) -> ModelOutput:
        output = super().heads(hidden)
        return output._replace(baseline=output.baseline - torch.inf)


class WrongConstructor(Good):
    def __init__(self, observation: Sequence[LeafSpec]) -> None:
        super().__init__(observation, 3)


class WrongLayerSize(Good):
    def __init__(self, observation: Sequence[LeafSpec], num_actions: int) -> None:
        super().__init__(observation, num_actions)
        self.input = nn.Linear(99, SIZE)


class NoInitialState(Good):
    initial_state = None  # type: ignore[assignment]


class FlatInitialState(Good):
    def initial_state(self, batch_size: int) -> Any:
        return (torch.zeros(batch_size, SIZE),)


class StateOfEveryBatchItsOwn(Good):
    def initial_state(self, batch_size: int) -> Any:
        return (torch.zeros(1, batch_size, SIZE + batch_size),)


class NoState(Good):
    def forward(self, inputs: ModelInputs, core_state: CoreState) -> Any:
        return super().forward(inputs, core_state)[0]


class GrowingState(Good):
    def forward(self, inputs: ModelInputs, core_state: CoreState) -> Any:
        output, state = super().forward(inputs, core_state)
        return output, state + state


class FlatLogits(Good):
    def heads(self, hidden: Tensor) -> ModelOutput:
        output = super().heads(hidden)
        return output._replace(policy_logits=output.policy_logits.flatten(0, 1))


class UnsqueezedBaseline(Good):
    def heads(self, hidden: Tensor) -> ModelOutput:
        return ModelOutput(self.policy(hidden), self.baseline(hidden))


class DoubleBaseline(Good):
    def heads(self, hidden: Tensor) -> ModelOutput:
        output = super().heads(hidden)
        return output._replace(baseline=output.baseline.double())


class Mixing(Good):
    """Treats the batch as time."""

    def encode(self, inputs: ModelInputs) -> Tensor:
        return super().encode(inputs).cumsum(dim=1)


class LooksAhead(Memoryless):
    def encode(self, inputs: ModelInputs) -> Tensor:
        return super().encode(inputs).flip(0).cumsum(dim=0).flip(0)


class NeverResets(Good):
    def reset(self, hidden: Tensor, is_first: Tensor, t: int) -> Tensor:
        return hidden


class ResetsAtUnrollsOnly(Good):
    def reset(self, hidden: Tensor, is_first: Tensor, t: int) -> Tensor:
        return super().reset(hidden, is_first, t) if t == 0 else hidden


class ForgetsToCarry(Good):
    def forward(self, inputs: ModelInputs, core_state: CoreState) -> Any:
        output, _ = super().forward(inputs, core_state)
        return output, core_state


class DetachedPolicy(Good):
    def heads(self, hidden: Tensor) -> ModelOutput:
        output = super().heads(hidden)
        return output._replace(policy_logits=output.policy_logits.detach())


class InfiniteGradient(Good):
    def heads(self, hidden: Tensor) -> ModelOutput:
        output = super().heads(hidden)
        return output._replace(baseline=(output.baseline - output.baseline).abs().sqrt() + output.baseline)


class HoldsALock(Good):
    """Has an attribute that cannot be copied."""

    def __init__(self, observation: Sequence[LeafSpec], num_actions: int) -> None:
        super().__init__(observation, num_actions)
        self.frames = (i for i in range(3))


class HoldsMoreThanTensors(Good):
    """Has a state that a checkpoint of weights cannot hold."""

    def get_extra_state(self) -> dict[str, int]:
        return {"calls": 3}


NOT_A_CLASS = 3


def log_likelihood_loss(output: ModelOutput, rollout: Rollout, config: LossConfig, entropy_cost: Tensor) -> LossOutput:
    """Infinite for an action that the model masks."""
    loss = impala_loss(output, rollout, config, entropy_cost)
    log_policy = output.policy_logits[:-1].log_softmax(dim=-1)
    return loss._replace(total=loss.total - log_policy.gather(-1, rollout.action.unsqueeze(-1)).mean())


def scaled_loss(
    output: ModelOutput, rollout: Rollout, config: LossConfig, entropy_cost: Tensor, *, scale: float
) -> LossOutput:
    """Has a required option."""
    loss = impala_loss(output, rollout, config, entropy_cost)
    return loss._replace(total=scale * loss.total)


def loss_without_targets(output: ModelOutput, rollout: Rollout, config: LossConfig, entropy_cost: Tensor) -> LossOutput:
    return impala_loss(output, rollout, config, entropy_cost)._replace(value_targets=None)


def carelessly_averaged_loss(
    output: ModelOutput, rollout: Rollout, config: LossConfig, entropy_cost: Tensor
) -> LossOutput:
    loss = impala_loss(output, rollout, config, entropy_cost)
    return loss._replace(total=loss.total / rollout.valid.sum())


def detached_loss(output: ModelOutput, rollout: Rollout, config: LossConfig, entropy_cost: Tensor) -> LossOutput:
    loss = impala_loss(output, rollout, config, entropy_cost)
    return loss._replace(total=loss.total.detach())


def unreduced_loss(output: ModelOutput, rollout: Rollout, config: LossConfig, entropy_cost: Tensor) -> LossOutput:
    loss = impala_loss(output, rollout, config, entropy_cost)
    return loss._replace(total=loss.total + output.baseline[:-1])


def number_loss(output: ModelOutput, rollout: Rollout, config: LossConfig, entropy_cost: Tensor) -> LossOutput:
    loss = impala_loss(output, rollout, config, entropy_cost)
    return loss._replace(parts={"entropy": LossPart(1.0)})  # type: ignore[arg-type]


def misnamed_loss(output: ModelOutput, rollout: Rollout, config: LossConfig, entropy_cost: Tensor) -> LossOutput:
    loss = impala_loss(output, rollout, config, entropy_cost)
    return loss._replace(parts={"step,1": LossPart(loss.total.detach())})


def bare_loss(output: ModelOutput, rollout: Rollout, config: LossConfig, entropy_cost: Tensor) -> LossOutput:
    loss = impala_loss(output, rollout, config, entropy_cost)
    return loss._replace(parts={"bare": loss.total.detach()})  # type: ignore[dict-item]


def oddly_weighted_loss(output: ModelOutput, rollout: Rollout, config: LossConfig, entropy_cost: Tensor) -> LossOutput:
    loss = impala_loss(output, rollout, config, entropy_cost)
    return loss._replace(parts={"odd": LossPart(loss.total.detach(), "mean")})  # type: ignore[arg-type]


def talkative_loss(output: ModelOutput, rollout: Rollout, config: LossConfig, entropy_cost: Tensor) -> LossOutput:
    loss = impala_loss(output, rollout, config, entropy_cost)
    return loss._replace(parts={f"part{index}": LossPart(loss.total.detach()) for index in range(40)})


def counting_loss(output: ModelOutput, rollout: Rollout, config: LossConfig, entropy_cost: Tensor) -> LossOutput:
    """Adds a part of each kind to those of IMPALA."""
    loss = impala_loss(output, rollout, config, entropy_cost)
    valid = rollout.valid.float()
    own = {"own_loss": LossPart(loss.total.detach()), "num_valid": LossPart(valid.sum(), "sum")}
    own["mean_reward"] = LossPart((rollout.rewards[1:] * valid).sum() / valid.sum().clamp(min=1), "transitions")
    return loss._replace(parts={**loss.parts, **own})


def nan_loss(output: ModelOutput, rollout: Rollout, config: LossConfig, entropy_cost: Tensor) -> LossOutput:
    loss = impala_loss(output, rollout, config, entropy_cost)
    return loss._replace(total=loss.total + torch.nan)


def infinite_gradient_loss(
    output: ModelOutput, rollout: Rollout, config: LossConfig, entropy_cost: Tensor
) -> LossOutput:
    loss = impala_loss(output, rollout, config, entropy_cost)
    return loss._replace(total=loss.total + (loss.total - loss.total).abs().sqrt())


def tensor_loss(output: ModelOutput, rollout: Rollout, config: LossConfig, entropy_cost: Tensor) -> Tensor:
    return output.baseline.square().mean()


def failing_loss(output: ModelOutput, rollout: Rollout, config: LossConfig, entropy_cost: Tensor) -> LossOutput:
    raise IndexError("there is no row 7")
