"""Some updates of one rank among several, or of one learner on their concatenated batches: `update_all`.

    python -m tests.unit.learner.ranks.updates FOLDER

writes FOLDER/<rank>.pt.
"""

import os
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from kubebeast_learner.algorithm.learner import Learner, UpdateStats
from kubebeast_learner.algorithm.losses import LossOutput, impala_loss
from kubebeast_learner.algorithm.made_up import empty_rollout
from kubebeast_learner.algorithm.options.passes import Passes
from kubebeast_learner.algorithm.rollout import Rollout, map_tensors
from kubebeast_learner.config import LossConfig, ModelConfig, OptimizerConfig, PassesConfig
from kubebeast_learner.models import ModelOutput, make_model
from kubebeast_learner.ranks.group import open_group
from kubebeast_learner.ranks.place import Place
from kubebeast_learner.ranks.turns import Turns
from tests.unit.learner.algorithm.learning_data import VECTOR, discrete, random_rollout

NUM_UPDATES = 3
PLAIN_DESCENT = OptimizerConfig(learning_rate=1e4, alpha=0.0, epsilon=1e6, grad_norm_clipping=0.0)
"""Gradient descent with the rate 0.01, so that weights differ as much as gradients."""

DEFAULT_LOSS = LossConfig()
ONE_PASS = PassesConfig()
THREE_MINIBATCHES = PassesConfig(passes=2, minibatches=3)
SMALL = ModelConfig(model="mlp", hidden_sizes=(8,))


@dataclass(frozen=True)
class Case:
    loss: LossConfig = DEFAULT_LOSS
    optimizer: OptimizerConfig = PLAIN_DESCENT
    model: ModelConfig = SMALL
    empty_ranks: tuple[int, ...] = ()
    """Ranks without a batch in the second update."""
    broken_rank: int | None = None
    """Rank with rewards of NaN in its second batch."""
    tasks: int = 1
    passes: PassesConfig = ONE_PASS


def policy_only(output: ModelOutput, rollout: Rollout, config: LossConfig, entropy_cost: Tensor) -> LossOutput:
    """A user's loss that leaves the baseline's parameters without a gradient."""
    loss = impala_loss(output, rollout, config, entropy_cost)
    detached = output._replace(baseline=output.baseline.detach())
    return loss._replace(total=impala_loss(detached, rollout, config, entropy_cost).total)


def flat(stats: UpdateStats) -> dict[str, Any]:
    """Returns the results of an update by name, with those of its parts."""
    return {name: value for name, value in asdict(stats).items() if name != "parts"} | dict(stats.parts)


CASES = {
    "sum": Case(LossConfig(loss_reduction="sum")),
    "mean": Case(LossConfig(loss_reduction="mean")),
    "normalised advantages, sum": Case(LossConfig(loss_reduction="sum", normalise_advantages=True)),
    "normalised advantages, mean": Case(LossConfig(loss_reduction="mean", normalise_advantages=True)),
    "clipped": Case(optimizer=replace(PLAIN_DESCENT, grad_norm_clipping=0.1)),
    "rmsprop": Case(optimizer=OptimizerConfig(learning_rate=1e-3)),
    "lstm": Case(model=ModelConfig(model="mlp", hidden_sizes=(8,), use_lstm=True)),
    "observation statistics": Case(model=ModelConfig(model="mlp", hidden_sizes=(8,), normalise_observations=True)),
    "popart": Case(model=ModelConfig(model="mlp", hidden_sizes=(8,), normalise_values=True)),
    "popart of tasks": Case(model=ModelConfig(model="mlp", hidden_sizes=(8,), normalise_values=True), tasks=2),
    "a loss without a baseline": Case(LossConfig(loss=f"{__name__}:policy_only")),
    "empty share, sum": Case(LossConfig(loss_reduction="sum", normalise_advantages=True), empty_ranks=(1,)),
    "empty share, mean": Case(LossConfig(loss_reduction="mean"), empty_ranks=(0,)),
    "empty share, statistics": Case(
        model=ModelConfig(model="mlp", hidden_sizes=(8,), normalise_values=True, normalise_observations=True),
        empty_ranks=(1,),
    ),
    "not finite": Case(broken_rank=1),
    "two passes": Case(passes=PassesConfig(passes=2)),
    "minibatches, sum": Case(LossConfig(loss_reduction="sum"), passes=THREE_MINIBATCHES),
    "minibatches, mean": Case(
        LossConfig(loss_reduction="mean", normalise_advantages=True), passes=THREE_MINIBATCHES, empty_ranks=(1,)
    ),
    "minibatches of unrolls": Case(
        model=ModelConfig(model="mlp", hidden_sizes=(8,), use_lstm=True), passes=PassesConfig(passes=2, minibatches=2)
    ),
    "minibatches, statistics": Case(
        model=ModelConfig(model="mlp", hidden_sizes=(8,), normalise_values=True, normalise_observations=True),
        passes=THREE_MINIBATCHES,
        empty_ranks=(0,),
    ),
}


def batch(case: Case, rank: int, index: int) -> Rollout | None:
    """Returns a batch with another size and number of valid transitions for every rank; None if the rank has none."""
    if index == 1 and rank in case.empty_ranks:
        return None
    num_unrolls, seed = 2 + rank, 100 * index + rank
    num_layers_and_size = (1, num_unrolls, 8)
    core_state = tuple(torch.zeros(num_layers_and_size) for _ in range(2)) if case.model.use_lstm else ()
    rollout = random_rollout(batch_size=num_unrolls, seed=seed, core_state=core_state)
    rollout.valid[:, 0] &= torch.arange(rollout.unroll_length) <= rank + index
    if case.tasks > 1:
        rollout = replace(rollout, task=torch.arange(num_unrolls).remainder(case.tasks).unsqueeze(0))
    if index == 1 and rank == case.broken_rank:
        rollout = replace(rollout, rewards=torch.full_like(rollout.rewards, torch.nan))
    return rollout


def concatenated(rollouts: Sequence[Rollout | None]) -> Rollout:
    first, *others = [rollout for rollout in rollouts if rollout is not None]
    return map_tensors(lambda *tensors: torch.cat(tensors, dim=1), first, *others)


def make_learner(case: Case, seed: int) -> Learner:
    torch.manual_seed(seed)
    model = make_model([VECTOR], [discrete(3)], case.model, case.tasks)
    return Learner(model, case.optimizer, case.loss, schedule_steps=1000, passes=case.passes)


class JoinedPasses:
    """The minibatches of several ranks, each joined with those of the others."""

    are_plain = False

    def __init__(self, case: Case, sizes: Sequence[int]) -> None:
        """sizes: numbers of unrolls of the ranks."""
        self._passes = Passes(case.passes, by_unroll=case.model.use_lstm)
        self._sizes = sizes

    def over(
        self, rollout: Rollout, estimate: Callable[[Rollout], Rollout], seed: int
    ) -> Iterator[tuple[Rollout, Rollout]]:
        of_ranks = []
        for rank, own in enumerate(self._split(rollout)):
            estimate_own = partial(self._estimate, rollout, estimate, rank)
            of_ranks.append(self._passes.over(own, estimate_own, seed))
        for pairs in zip(*of_ranks, strict=True):
            batches, parts = zip(*pairs, strict=True)
            yield concatenated(batches), concatenated(parts)

    def _estimate(self, whole: Rollout, estimate: Callable[[Rollout], Rollout], rank: int, _: Rollout) -> Rollout:
        return self._split(estimate(whole))[rank]

    def _split(self, rollout: Rollout) -> list[Rollout]:
        ends = [sum(self._sizes[: index + 1]) for index in range(len(self._sizes))]
        slices = [slice(end - size, end) for end, size in zip(ends, self._sizes, strict=True)]
        return [map_tensors(lambda tensor, own=own: tensor[:, own], rollout) for own in slices]


def update_all(case: Case, num_ranks: int) -> dict[str, Any]:
    """Trains one learner on the batches of all ranks together."""
    learner = make_learner(case, seed=0)
    stats = []
    for index in range(NUM_UPDATES):
        rollouts = [batch(case, rank, index) for rank in range(num_ranks)]
        if case.passes is not ONE_PASS:
            learner._passes = JoinedPasses(case, [each.batch_size for each in rollouts if each])  # type: ignore[assignment]
        stats.append(flat(learner.update(concatenated(rollouts), step=index)))
    return {"model": learner.model.state_dict(), "stats": stats}


def update_as_rank(case: Case, place: Place) -> dict[str, Any]:
    learner = make_learner(case, seed=place.rank)  # the first rank's weights count
    turns, stats = Turns(place.num_ranks, patience_s=0.0), []
    for index in range(NUM_UPDATES):
        rollout = batch(case, place.rank, index)
        num_valid = 0 if rollout is None else int(rollout.valid.sum())
        turn = turns.agree(has_batch=rollout is not None, num_valid=num_valid, num_fresh=num_valid)
        rollout = rollout or empty_rollout(learner.model, [VECTOR])
        stats.append(flat(learner.update(rollout, step=index, share=turn.share)))
    return {"model": learner.model.state_dict(), "stats": stats}


def main() -> None:
    warnings.simplefilter("error")
    torch.set_num_threads(1)
    place = Place.read(os.environ)
    with open_group(place, torch.device("cpu"), timeout_s=60.0):
        results = {name: update_as_rank(case, place) for name, case in CASES.items()}
    torch.save(results, Path(sys.argv[1]) / f"{place.rank}.pt")


if __name__ == "__main__":
    main()
