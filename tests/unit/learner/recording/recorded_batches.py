"""Rollouts of any environment with random content, and recordings of them."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from kubebeast_common.spec.env_spec import EnvSpec
from kubebeast_common.spec.leaves import Leaf
from kubebeast_learner.algorithm.rollout import Rollout
from kubebeast_learner.distributions import ActionDistribution
from kubebeast_learner.recording.recorder import Limits, Recorder
from kubebeast_learner.recording.shards import Source

T, B = 5, 3
SCREEN = Leaf("screen", "uint8", (6, 7), frame_stack=4)
CHOICE = Leaf("", "int64", (), num_categories=3)
SMALL = EnvSpec("Small-v0", (Leaf("", "float32", (2,)),), (CHOICE,))
MANY = 1000


def source_of(spec: EnvSpec = SMALL, **changes: object) -> Source:
    source = Source(
        run="run", rank=0, num_ranks=1, env_spec=spec, unroll_length=T, batch_size=B, settings={"model": "mlp"}
    )
    return replace(source, **changes)  # type: ignore[arg-type]


def random_values(leaf: Leaf, *leading: int) -> Tensor:
    dtype, shape = getattr(torch, leaf.dtype), (*leading, *leaf.shape)
    if dtype.is_floating_point:
        return torch.randn(shape, dtype=dtype)
    return torch.randint(leaf.num_categories or 2, shape).to(dtype)


def random_stacks(leaf: Leaf, valid: Tensor) -> Tensor:
    """Returns whole stacks [T+1, B, k, *shape] that shift by one frame in each valid transition."""
    rows = [random_values(leaf, B, leaf.frame_stack)]
    for is_valid in valid:
        shifted = torch.cat([rows[-1][:, 1:], random_values(leaf, B, 1)], dim=1)
        fresh = random_values(leaf, B, leaf.frame_stack)
        rows.append(torch.where(is_valid.reshape(B, *[1] * (shifted.ndim - 1)), shifted, fresh))
    return torch.stack(rows)


def random_rollout(spec: EnvSpec = SMALL, *, seed: int = 0, core_state: Sequence[Tensor] = ()) -> Rollout:
    """Returns T transitions of B unrolls; in the last one an episode terminates at row 2."""
    torch.manual_seed(seed)
    distribution = ActionDistribution.of(spec.action)
    terminated = torch.zeros(T + 1, B, dtype=torch.bool)
    terminated[2, -1] = True
    valid = ~terminated[:-1]
    actions = distribution.from_leaves([random_values(leaf, T + 1, B).numpy() for leaf in spec.action])
    stacks = [random_stacks(leaf, valid) if leaf.frame_stack > 1 else None for leaf in spec.observation]
    return Rollout(
        observation=tuple(
            random_values(leaf, T + 1, B) if stack is None else stack
            for leaf, stack in zip(spec.observation, stacks, strict=True)
        ),
        rewards=torch.randn(T + 1, B),
        terminated=terminated,
        truncated=torch.zeros_like(terminated),
        is_first=terminated.roll(1, dims=0),
        last_action=actions,
        action=actions[1:],
        policy_logits=torch.randn(T, B, distribution.num_logits),
        valid=valid,
        policy_version=torch.randint(5, (T, B)),
        core_state=tuple(core_state),
        distribution=distribution,
        origin=torch.arange(3 * B).reshape(3, B),
    )


def record(
    folder: Path,
    rollouts: Sequence[Rollout],
    source: Source | None = None,
    *,
    first: int = 0,
    shard_bytes: int = 1 << 30,
    max_bytes: int = 0,
) -> dict[str, int]:
    """Records a batch for each update from `first` on; returns the failures."""
    failures: dict[str, int] = {}
    limits = Limits(shard_bytes=shard_bytes, max_bytes=max_bytes, max_waiting=MANY)
    with Recorder(folder, source or source_of(), update=first, limits=limits, failures=failures) as recorder:
        for update, rollout in enumerate(rollouts, start=first):
            recorder.add(rollout, update=update, step=update * T * B)
    return failures
