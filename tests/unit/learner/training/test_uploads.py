"""Every batch is trained on once and in order, whether it was copied ahead of its turn or not."""

import torch

from kubebeast_learner.algorithm.rollout import Rollout
from kubebeast_learner.profiling.phases import PhaseTimes
from kubebeast_learner.training.uploads import Uploads
from tests.unit.learner.training.scripted_actors import BATCHES, ScriptedActors


def make() -> tuple[Uploads, PhaseTimes]:
    phases = PhaseTimes()
    return Uploads(ScriptedActors(), torch.device("cpu"), phases), phases


def take(uploads: Uploads) -> Rollout | None:
    rollout = uploads.next(0)
    if rollout is None:
        return None
    assert uploads.on_device(rollout) is not None
    return rollout


def test_a_batch_that_was_fetched_is_the_next_one() -> None:
    uploads, phases = make()
    uploads.fetch()
    uploads.fetch()  # at most one is ahead
    ahead = uploads.next(0)
    assert ahead is not None and uploads.next(0) is ahead
    taken = [rollout for _ in range(BATCHES + 1) if (rollout := take(uploads)) is not None]
    assert taken[0] is ahead
    assert len(taken) == BATCHES
    assert sum(phases.seconds["to_device"].counts) == BATCHES


def test_nothing_is_fetched_if_nothing_waits() -> None:
    uploads, phases = make()
    for _ in range(BATCHES):
        take(uploads)
    uploads.fetch()
    assert uploads.next(0) is None
    assert sum(phases.seconds["to_device"].counts) == BATCHES


def test_another_batch_leaves_the_fetched_one_in_its_place() -> None:
    uploads, _ = make()
    other = take(uploads)
    assert other is not None
    uploads.fetch()
    ahead = uploads.next(0)
    uploads.on_device(other)
    assert uploads.next(0) is ahead
