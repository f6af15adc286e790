"""Unrolls in shared memory keep their rows on the way into batches."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from kubebeast_common.spec.env_spec import EnvSpec
from kubebeast_common.spec.leaves import Leaf
from kubebeast_learner.actors.mono.blocks import BlockLayout, copy_columns, write_row
from kubebeast_learner.actors.mono.shared_memory import shared_memory
from kubebeast_learner.algorithm.rollout import tensors_of
from kubebeast_learner.distributions import ActionDistribution

SPEC = EnvSpec(
    "Test-v0",
    (Leaf("board", "uint8", (3, 3), 2, 0), Leaf("speed", "float64", (), 1, 0)),
    (Leaf("", "int64", (), 1, 4),),
)
LAYOUT = BlockLayout(
    SPEC,
    unroll_length=5,
    distribution=ActionDistribution.of(SPEC.action),
    state_shapes=((2, 7),),
    interleaved=(False, False),
)
INTERLEAVED = replace(LAYOUT, interleaved=(True, False))
LAYOUTS = pytest.mark.parametrize("layout", [LAYOUT, INTERLEAVED])


def allocate(shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    return torch.zeros(shape, dtype=dtype)


@LAYOUTS
def test_a_block_has_the_shapes_and_types_of_the_environment_and_the_model(layout: BlockLayout) -> None:
    block = layout.make(3, allocate)
    board, speed = block.observation
    assert (board.shape, board.dtype) == ((6, 3, 2, 3, 3), torch.uint8)
    assert (speed.shape, speed.dtype) == ((6, 3), torch.float64)
    assert block.policy_logits.shape == (5, 3, 4)
    assert block.core_state[0].shape == (2, 3, 7)
    assert (block.unroll_length, block.batch_size) == (5, 3)


def test_frames_lie_place_by_place_where_the_model_reads_them_so() -> None:
    board, speed = INTERLEAVED.make(3, allocate).observation
    assert board.movedim(2, -1).is_contiguous()
    assert speed.is_contiguous()


@LAYOUTS
def test_a_row_is_written_as_it_is(layout: BlockLayout) -> None:
    board, _ = layout.make(3, allocate).observation
    row = np.arange(54, dtype=np.uint8).reshape(3, 2, 3, 3)
    write_row(board[4].numpy(), row)
    assert (board[4].numpy() == row).all()
    assert not board[:4].any() and not board[5:].any()


@LAYOUTS
def test_blocks_share_memory_without_overlap(layout: BlockLayout) -> None:
    memory = shared_memory(2 * layout.num_bytes(3))
    first, second = layout.blocks_in(memory, 3)
    all_tensors = [*tensors_of(first), *tensors_of(second)]
    for number, tensor in enumerate(all_tensors):
        tensor.fill_(number % 2)
    for number, tensor in enumerate(all_tensors):
        assert (tensor == number % 2).all()
    again, _ = layout.blocks_in(memory, 3)
    assert again.rewards.data_ptr() == first.rewards.data_ptr()


@LAYOUTS
def test_columns_of_several_blocks_become_one_batch(layout: BlockLayout) -> None:
    source, other, batch = (layout.make(size, allocate) for size in (3, 4, 4))
    for number, tensor in enumerate([*tensors_of(source), *tensors_of(other)]):
        columns = torch.arange(tensor.shape[1]).view(1, -1, *[1] * (tensor.ndim - 2))
        tensor.copy_((columns + number) % 2)
    copy_columns(source, [1, 2], batch, 0)
    copy_columns(other, [0, 3], batch, 2)
    for mixed, left, right in zip(tensors_of(batch), tensors_of(source), tensors_of(other), strict=True):
        assert torch.equal(mixed, torch.cat([left[:, 1:3], right[:, [0, 3]]], dim=1))
