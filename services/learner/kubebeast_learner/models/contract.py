"""The contract of users' models, checked on made-up rows before anything starts; every violation is explained."""

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from kubebeast_common.spec.leaves import LeafSpec
from kubebeast_learner.config.plugins import describe
from kubebeast_learner.distributions import ActionDistribution
from kubebeast_learner.errors import ModelSpecError
from kubebeast_learner.models.base import ModelInputs, ModelOutput
from kubebeast_learner.models.core import CoreState
from kubebeast_learner.models.dummy import dummy_inputs

T, B = 3, 2
# Tolerances relative to the largest output. A call of another shape rounds differently, most of all in bfloat16.
_SAME_CALL, _OTHER_CALL = 1e-4, 2e-2
_FIELDS = ModelOutput._fields
_Result = tuple[ModelOutput, CoreState]


def check_contract(
    net: nn.Module, name: str, observation: Sequence[LeafSpec], distribution: ActionDistribution, num_tasks: int = 1
) -> None:
    """Runs `net` on rows of the environment's shapes; raises ModelSpecError with the violation by the model `name`.

    Shapes and dtypes are right; outputs are finite, except the logit -inf of masked actions; environments do not mix;
    an unroll equals its single steps; is_first resets the core state; a gradient reaches the parameters; `net` can be
    copied. Leaves torch's global generator unchanged.
    """
    was_training = net.training
    net.eval()  # dropout would make two calls differ
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        inputs = dummy_inputs(observation, distribution, T, B, num_tasks=num_tasks)
        trial = _Trial(net, name, distribution.num_logits, inputs)
        trial.check_initial_state()
        trial.check_gradients()
        with torch.no_grad():
            trial.check_environments_stay_apart()
            trial.check_single_steps()
            trial.check_episode_starts()
    net.train(was_training)
    require_copies(net, name, ModelSpecError)


def require_copies(net: nn.Module, name: str, error_type: type[Exception]) -> None:
    """Raises an error that begins with `name`, with the reason, if the actors cannot have copies of a user's module."""
    try:
        copy.deepcopy(net)
        others = [key for key, value in net.state_dict().items() if not isinstance(value, Tensor)]
    except Exception as error:  # the user's code may raise anything
        raise error_type(f"{name} cannot be copied for the actors: {describe(error)}") from error
    if others:
        reason = f"its state_dict has {others[0]}, which is no tensor: take a buffer in place of get_extra_state"
        raise error_type(f"{name} cannot be copied for the actors: {reason}")


@dataclass(frozen=True, slots=True)
class _Trial:
    net: nn.Module
    name: str
    num_logits: int
    inputs: ModelInputs
    """[T, B] rows; is_first is false in all of them."""

    def check_initial_state(self) -> None:
        sizes = []
        for batch_size in (1, B):
            state: Any = self._initial_state(batch_size)
            well_formed = isinstance(state, tuple) and all(
                isinstance(x, Tensor) and x.dtype == torch.float32 and x.ndim == 3 and x.shape[1] == batch_size
                for x in state
            )
            if not well_formed:
                raise ModelSpecError(
                    f"{self.name}.initial_state({batch_size}) must return a tuple of float32 tensors "
                    f"[num_layers, {batch_size}, size], () without memory; it returned {_describe(state)}"
                )
            sizes.append([(len(x), x.shape[2]) for x in state])
        if sizes[0] != sizes[1]:
            raise ModelSpecError(f"{self.name}.initial_state: num_layers and size must not depend on batch_size")

    def check_gradients(self) -> None:
        output, _ = self._run(self.inputs, self._random_state())
        parameters = [parameter for parameter in self.net.parameters() if parameter.requires_grad]
        for field in _FIELDS:
            value = getattr(output, field)
            if not value.requires_grad:
                raise ModelSpecError(
                    f"{self.name}: no gradient reaches a parameter from {field}; is it detached, or made under no_grad?"
                )
            gradients = torch.autograd.grad(value.sum(), parameters, retain_graph=True, allow_unused=True)
            if not all_finite(gradients):
                raise ModelSpecError(f"{self.name}: the gradient of {field} is not finite")

    def check_environments_stay_apart(self) -> None:
        state, other_state = self._random_state(), self._random_state()
        others = self.inputs.map(lambda rows: rows.flip(0))
        before = self._run(self.inputs, state)
        for index in range(B):
            keep = partial(_keep_environment, index)
            after = self._run(self.inputs.map(keep, others), tuple(map(keep, state, other_state)))
            self._require_equal(
                _environment(index, before),
                _environment(index, after),
                _SAME_CALL,
                "one environment's values depend on another's inputs: dimension 0 is time, dimension 1 the environment",
            )

    def check_single_steps(self) -> None:
        is_first = torch.zeros(T, B, dtype=torch.bool)
        is_first[0, 0] = is_first[2, 1] = True
        inputs, core_state = self.inputs._replace(is_first=is_first), self._random_state()
        whole = self._run(inputs, core_state)
        steps = []
        for t in range(T):
            output, core_state = self._run(inputs.map(lambda rows, t=t: rows[t : t + 1]), core_state)
            steps.append(output)
        joined = ModelOutput(*(torch.cat([getattr(x, field) for x in steps]) for field in _FIELDS))
        self._require_equal(
            whole,
            (joined, core_state),
            _OTHER_CALL,
            f"{T} rows in one call give other values than the same rows one by one: the learner runs whole unrolls, "
            "the actors single rows; carry core_state from row to row, and reset it at every row with is_first",
        )

    def check_episode_starts(self) -> None:
        starts = self.inputs.map(lambda rows: rows[:1])._replace(is_first=torch.ones(1, B, dtype=torch.bool))
        self._require_equal(
            self._run(starts, self._initial_state(B)),
            self._run(starts, self._random_state()),
            _SAME_CALL,
            "the first row of an episode depends on the episode before: reset core_state to its initial value in "
            "rows with is_first",
        )

    def _initial_state(self, batch_size: int) -> CoreState:
        try:
            return self.net.initial_state(batch_size)  # type: ignore[operator,no-any-return]
        except Exception as error:
            raise ModelSpecError(f"{self.name}.initial_state({batch_size}) failed: {describe(error)}") from error

    def _random_state(self) -> CoreState:
        return tuple(torch.randn_like(tensor) for tensor in self._initial_state(B))

    def _run(self, inputs: ModelInputs, core_state: CoreState) -> tuple[ModelOutput, CoreState]:
        """Calls forward and checks types, shapes, dtypes and finiteness of the result."""
        rows = len(inputs.reward)
        call = f"{self.name}.forward with T={rows}, B={B}"
        try:
            result = self.net(inputs, core_state)
        except Exception as error:
            raise ModelSpecError(f"{call} failed: {describe(error)}") from error
        if not (isinstance(result, tuple) and len(result) == 2 and all(hasattr(result[0], x) for x in _FIELDS)):
            raise ModelSpecError(f"{call} must return (ModelOutput, core_state), it returned {_describe(result)}")
        output, new_state = result
        for field, shape in (("policy_logits", [rows, B, self.num_logits]), ("baseline", [rows, B])):
            value = getattr(output, field)
            if not isinstance(value, Tensor) or value.dtype != torch.float32 or list(value.shape) != shape:
                raise ModelSpecError(f"{call}: {field} must be float32 {shape}, it is {_describe(value)}")
        if output.policy_logits.isnan().any() or output.policy_logits.isposinf().any():
            raise ModelSpecError(f"{call}: policy_logits must be finite, or -inf for an action that is masked")
        if not output.baseline.isfinite().all():
            raise ModelSpecError(f"{call}: baseline must be finite")
        if _describe(new_state) != _describe(core_state):
            raise ModelSpecError(
                f"{call}: the new core_state must be like the one before, {_describe(core_state)}, "
                f"it is {_describe(new_state)}"
            )
        return output, new_state

    def _require_equal(self, a: _Result, b: _Result, tolerance: float, violation: str) -> None:
        for field in _FIELDS:
            self._require_close(field, getattr(a[0], field), getattr(b[0], field), tolerance, violation)
        for x, y in zip(a[1], b[1], strict=True):
            self._require_close("core_state", x, y, tolerance, violation)

    def _require_close(self, what: str, x: Tensor, y: Tensor, tolerance: float, violation: str) -> None:
        # Masked logits: -inf equals -inf, and does not count for the relative tolerance.
        difference = (x - y).masked_fill(x == y, 0.0).abs().max().item()
        largest = x.masked_fill(x.isinf(), 0.0).abs().max().item()
        if not difference <= tolerance * largest:
            raise ModelSpecError(f"{self.name}: {what}: {violation} (largest difference {difference:.3g})")


def require_choice(policy_logits: Tensor, taken: Tensor) -> None:
    """Raises ModelSpecError if policy_logits [*, A] mask every action by -inf in a row that is `taken`, bool [*]."""
    masked = taken & (policy_logits == -torch.inf).all(dim=-1)
    if masked.any():
        raise ModelSpecError(
            f"policy_logits: all {policy_logits.shape[-1]} actions are masked by -inf in {int(masked.sum())} of "
            f"{taken.numel()} rows: a model must leave an action in every row that does not end its episode"
        )


def require_playable(policy_logits: Tensor, taken: Tensor) -> None:
    """Raises ModelSpecError if a row of policy_logits [*, A] that is `taken`, bool [*], holds NaN or +inf, or masks
    every action by -inf.
    """
    require_choice(policy_logits, taken)
    bad = policy_logits.isnan() | policy_logits.isposinf()
    rows = taken & bad.any(dim=-1)
    if rows.any():
        number = policy_logits[rows.unsqueeze(-1) & bad][0].item()
        raise ModelSpecError(
            f"policy_logits: {number} in {int(rows.sum())} of {taken.numel()} rows: the weights are not finite, or the "
            "observation holds numbers too large for them"
        )


def all_finite(gradients: Sequence[Tensor | None]) -> bool:
    """Returns True if all gradients are finite; None is the gradient of an unused parameter (autograd.grad)."""
    return all(gradient is None or bool(gradient.isfinite().all()) for gradient in gradients)


def _keep_environment(index: int, rows: Tensor, others: Tensor) -> Tensor:
    kept = others.clone()
    kept[:, index] = rows[:, index]
    return kept


def _environment(index: int, result: _Result) -> _Result:
    output, core_state = result
    logits, baseline = output.policy_logits[:, index], output.baseline[:, index]
    return ModelOutput(logits, baseline), tuple(tensor[:, index] for tensor in core_state)


def _describe(value: Any) -> str:
    """Returns "float32 [3, 2]" for a tensor, the same for the items of tuples and lists, else the type."""
    if isinstance(value, Tensor):
        return f"{str(value.dtype).removeprefix('torch.')} {list(value.shape)}"
    if isinstance(value, tuple | list):
        items = ", ".join(map(_describe, value))
        return f"({items})" if isinstance(value, tuple) else f"[{items}]"
    return "None" if value is None else type(value).__name__
