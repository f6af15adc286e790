"""Stacks from single frames equal those from a list of each environment's frames."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from kubebeast_common.spec.leaves import Leaf
from kubebeast_learner.actors.frame_table import FrameTable, takes_single_frames

IMAGE, SPEED = Leaf("image", "uint8", (2, 2), 4, 0), Leaf("speed", "float32", (3,), 1, 0)
BITS = Leaf("bits", "bool", (5,), 2, 0)
LEAVES = [IMAGE, SPEED, BITS]
NUM_SLOTS = 40


@dataclass
class SingleFrames:
    """The attributes of kubebeast_native.InferenceBatch that a table reads."""

    slots: NDArray[np.int32]
    is_first: NDArray[np.bool_]
    observation: list[NDArray[Any]]
    first_stacks: list[NDArray[Any]]


class Film:
    """Draws the frames of environments, and records them."""

    def __init__(self) -> None:
        self._random = np.random.default_rng(0)
        self._seen: dict[tuple[int, int], list[NDArray[Any]]] = {}

    def batch(self, slots: NDArray[np.int32], is_first: NDArray[np.bool_]) -> SingleFrames:
        observation, first_stacks = [], []
        for index, leaf in enumerate(LEAVES):
            stacks = [
                self._show(index, leaf, slot, begins) for slot, begins in zip(slots.tolist(), is_first, strict=True)
            ]
            whole = [stack for stack, begins in zip(stacks, is_first, strict=True) if begins]
            observation.append(np.stack([stack[-1] for stack in stacks]))
            rows = np.reshape(whole, (len(whole), *leaf.row_shape)).astype(leaf.dtype)
            first_stacks.append(rows if leaf.frame_stack > 1 else rows[:0])
        return SingleFrames(slots, is_first, observation, first_stacks)

    def stacks(self, index: int, slots: NDArray[np.int32]) -> NDArray[Any]:
        """Returns [N, *row_shape]: the newest stacks of the environments in these slots."""
        stacks = [np.stack(self._seen[slot, index]) for slot in slots.tolist()]
        return np.stack(stacks).reshape(len(slots), *LEAVES[index].row_shape)

    def _show(self, index: int, leaf: Leaf, slot: int, is_first: bool) -> list[NDArray[Any]]:
        frames = self._random.integers(256, size=(leaf.frame_stack, *leaf.shape)).astype(leaf.dtype)
        known = [] if is_first else self._seen[slot, index]
        self._seen[slot, index] = [*known, *frames][-leaf.frame_stack :] if is_first else [*known[1:], frames[0]]
        return self._seen[slot, index]


def test_stacks_are_those_of_each_environments_newest_frames() -> None:
    """Any environments in a batch, some of them at the start of an episode, and new slots."""
    random, film, table = np.random.default_rng(1), Film(), FrameTable(LEAVES, torch.device("cpu"))
    known: set[int] = set()
    for step in range(200):
        slots = random.permutation(min(NUM_SLOTS, 4 + step))[: random.integers(1, 9)].astype(np.int32)
        is_first = np.array([slot not in known or random.random() < 0.2 for slot in slots.tolist()])
        known |= set(slots.tolist())
        found = table.observe(film.batch(slots, is_first))  # type: ignore[arg-type]
        for index, leaf in enumerate(found):
            np.testing.assert_array_equal(leaf.numpy(), film.stacks(index, slots))
    assert len(table) < 2 * NUM_SLOTS


def test_a_table_has_no_more_than_twice_the_slots_that_it_has_seen() -> None:
    film, table = Film(), FrameTable(LEAVES, torch.device("cpu"))
    for slot in (0, 2, 700):
        table.observe(film.batch(np.array([slot], np.int32), np.array([True])))  # type: ignore[arg-type]
    assert len(table) == 701


@pytest.mark.parametrize(
    ("learner", "inference", "expected"),
    [
        ("cuda", ["cuda"], True),
        ("cuda:0", ["cuda:1"], True),
        ("cpu", ["cpu"], False),
        ("cuda", ["cpu"], False),
        ("cpu", ["cuda"], False),
        ("cuda:0", ["cuda:0", "cuda:1"], False),
    ],
)
def test_frames_come_once_where_learner_and_inference_each_have_a_gpu(
    learner: str, inference: list[str], expected: bool
) -> None:
    assert takes_single_frames(torch.device(learner), [torch.device(name) for name in inference]) is expected


def test_six_games_of_atari_take_less_than_two_megabytes() -> None:
    screen = Leaf("", "uint8", (84, 84), 4, 0)
    table = FrameTable([screen], torch.device("cpu"))
    frames = np.zeros((6, 84, 84), np.uint8)
    stacks = np.zeros((6, 4, 84, 84), np.uint8)
    table.observe(SingleFrames(np.arange(6, dtype=np.int32), np.ones(6, np.bool_), [frames], [stacks]))  # type: ignore[arg-type]
    assert sum(ring.nbytes for ring in table._rings) < 2e6
