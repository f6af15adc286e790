"""`kubebeast export`: writes a trained actor for programs without KubeBeast, checked against the original.

The exported module takes one step of B environments, for any B >= 1. Its inputs and outputs are tensors in a fixed
order, which the description file lists:

    *observation, reward, last_action, is_first, *core_state -> policy_logits, baseline, *core_state
"""

import json
import os
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

import torch
from rich.console import Console
from torch import Tensor, nn

from kubebeast_common.spec.env_spec import EnvSpec
from kubebeast_common.spec.leaves import Leaf
from kubebeast_learner.config import ConfigError, ExportConfig
from kubebeast_learner.models import Model, ModelInputs
from kubebeast_learner.play.export_description import describe, outputs
from kubebeast_learner.play.trained_model import TrainedModel, load_trained
from kubebeast_learner.run.checkpoint import CheckpointError

Format = Literal["export", "torchscript"]

SUFFIXES = {"export": ".pt2", "torchscript": ".pt"}
TOLERANCE = 1e-5
"""Maximum difference of an output from the original's, absolute and relative."""
CHECK_BATCH_SIZES = (1, 2, 5)
CHECK_STEPS = 8


class ExportError(RuntimeError):
    """A model that cannot be exported, or with an export that computes other outputs."""


class Actor(nn.Module):
    """One step of `model` with flat inputs and outputs; see the module's docstring."""

    def __init__(self, model: Model, num_leaves: int, task: int | None = None) -> None:
        """`task` is the one to play, for a model with several tasks."""
        super().__init__()
        self.task = task
        self.model = model.eval().requires_grad_(False)
        self.num_leaves = num_leaves

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        observation, (reward, last_action, is_first, *core_state) = inputs[: self.num_leaves], inputs[self.num_leaves :]
        output, core_state = self.model(
            ModelInputs(
                observation=tuple(leaf.unsqueeze(0) for leaf in observation),
                reward=reward.unsqueeze(0),
                last_action=last_action.unsqueeze(0),
                is_first=is_first.unsqueeze(0),
                task=None if self.task is None else torch.full_like(reward, self.task, dtype=torch.int64).unsqueeze(0),
            ),
            tuple(core_state),
        )
        return output.policy_logits.squeeze(0), output.baseline.squeeze(0), *core_state


def run(config: ExportConfig) -> int:
    """Runs the command. Returns the exit status. Raises ConfigError if there is no model or no place to write to."""
    try:
        trained = load_trained(config).playing(config.env)
        out = (config.out or Path("model" + SUFFIXES[config.format])).expanduser()
        difference = export(trained, out, config.format)
    except (CheckpointError, ExportError) as error:
        Console(stderr=True).print(f"kubebeast export: {error}", markup=False, soft_wrap=True)
        return 1
    print(
        f"{out}: {trained.env_id} at step {trained.step:,}; "
        f"outputs differ from the checkpoint's by at most {difference:.1g}; described in {out.with_suffix('.json')}",
        *trained.notes,
        sep="\n",
    )
    return 0


def export(trained: TrainedModel, out: Path, format: Format) -> float:
    """Writes `out` and its description, replacing existing files. Returns the largest difference of an output.

    Raises ExportError, which leaves existing files unchanged, and ConfigError if the files cannot be written.
    """
    actor = Actor(trained.model, len(trained.env_spec.observation), trained.task)
    unchecked = out.with_name(f".{out.name}")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        try:
            write(actor, example_inputs(actor, trained.env_spec), unchecked, format)
            difference = check(actor, trained.env_spec, load(unchecked, format))
            os.replace(unchecked, out)
        finally:
            unchecked.unlink(missing_ok=True)
        description = {"format": format, "torch": torch.__version__} | describe(trained)
        out.with_suffix(".json").write_text(json.dumps(description, indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"out = {str(out)!r}: {error}") from error
    return difference


def write(actor: Actor, example: Sequence[Tensor], path: Path, format: Format) -> None:
    """Exports by tracing one step with the inputs `example`, B > 1. Raises ExportError if the model resists."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # general warnings of torch; the result is checked
        try:
            if format == "export":
                batch = torch.export.Dim("batch", min=1)
                num_rows = actor.num_leaves + 3
                shapes = tuple({0 if index < num_rows else 1: batch} for index in range(len(example)))
                program = torch.export.export(actor, tuple(example), dynamic_shapes=(shapes,), strict=False)
                torch.export.save(program, path)
            else:
                traced = torch.jit.trace(actor, tuple(example), check_trace=False)  # type: ignore[no-untyped-call]
                torch.jit.save(traced, path)
        except OSError:
            raise
        except Exception as error:  # both formats may raise any error
            reason = str(error).strip().partition("\n")[0]
            other = next(name for name in SUFFIXES if name != format)
            raise ExportError(f"format {format}: {reason}; --format {other} may be able to") from error


def load(path: Path, format: Format) -> Callable[..., tuple[Tensor, ...]]:
    """Loads an export as its users do."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        if format == "export":
            return torch.export.load(path).module()
        traced: Callable[..., tuple[Tensor, ...]] = torch.jit.load(path)  # type: ignore[no-untyped-call]
        return traced


@torch.no_grad()
def check(actor: Actor, spec: EnvSpec, exported: Callable[..., tuple[Tensor, ...]]) -> float:
    """Plays CHECK_STEPS random steps with both, each with its own core_state, at several batch sizes.

    Returns the largest difference. Raises ExportError if it exceeds TOLERANCE.
    """
    generator = torch.Generator().manual_seed(0)
    largest = 0.0
    for batch_size in CHECK_BATCH_SIZES:
        core_state: Sequence[Tensor] = actor.model.initial_state(batch_size)
        exported_state: Sequence[Tensor] = core_state
        for step in range(CHECK_STEPS):
            inputs = random_inputs(actor, spec, batch_size, generator)
            if step == 0:
                inputs[-1].fill_(True)  # is_first
            expected = actor(*inputs, *core_state)
            actual = exported(*inputs, *exported_state)
            names = [output["name"] for output in outputs(actor.model)]
            for name, mine, theirs in zip(names, expected, actual, strict=True):
                largest = max(largest, _difference(f"{name}, step {step} of {batch_size} environments", mine, theirs))
            core_state, exported_state = expected[2:], actual[2:]
    return largest


def example_inputs(actor: Actor, spec: EnvSpec, batch_size: int = 3) -> list[Tensor]:
    inputs = random_inputs(actor, spec, batch_size, torch.Generator().manual_seed(0))
    return [*inputs, *actor.model.initial_state(batch_size)]


def random_inputs(actor: Actor, spec: EnvSpec, batch_size: int, generator: torch.Generator) -> list[Tensor]:
    """Returns all inputs except core_state, within the bounds of `spec`; episodes start with probability 0.25."""
    observation = [_random_leaf(leaf, batch_size, generator) for leaf in spec.observation]
    reward = torch.randn(batch_size, generator=generator)
    distribution = actor.model.distribution
    drawn = distribution.sample(torch.zeros(batch_size, distribution.num_logits), generator)
    is_first = torch.rand(batch_size, generator=generator) < 0.25
    return [*observation, reward, distribution.squashed(drawn), is_first]


def _random_leaf(leaf: Leaf, batch_size: int, generator: torch.Generator) -> Tensor:
    shape, dtype = (batch_size, *leaf.row_shape), getattr(torch, leaf.dtype)
    if dtype.is_floating_point:
        return torch.randn(shape, generator=generator, dtype=dtype)
    bound = leaf.num_categories or (2 if dtype == torch.bool else min(256, torch.iinfo(dtype).max + 1))
    return torch.randint(bound, shape, generator=generator).to(dtype)


def _difference(what: str, expected: Tensor, actual: Tensor) -> float:
    if actual.shape != expected.shape or actual.dtype != expected.dtype:
        raise ExportError(
            f"{what}: the export gives {actual.dtype} {list(actual.shape)} for {expected.dtype} {list(expected.shape)}"
        )
    if (expected.isnan() | expected.isposinf()).any():
        raise ExportError(f"{what}: {float(expected[~expected.isfinite()][0])}: the model's outputs are not finite")
    difference = float((actual - expected).masked_fill(actual == expected, 0).abs().max())  # -inf equals -inf
    if not torch.allclose(actual, expected, rtol=TOLERANCE, atol=TOLERANCE):
        raise ExportError(f"{what}: the export differs by {difference:.3g}, more than {TOLERANCE:g}")
    return difference
