"""Frame stacks as single frames: within an episode each row's stack is that of the row before, shifted by one frame."""

import torch
from torch import Tensor


def layout_of(leaf: Tensor, frame_stack: int, *, has_index: bool) -> str:
    """Returns the layout, one of shards.LAYOUTS, of an observation leaf of a rollout.

    Args:
        leaf: [T+1, B, *row_shape], or single frames [R, B, *shape].
        frame_stack: number of frames in a row.
        has_index: True if the rollout has a frame_index.
    """
    if frame_stack <= 1:
        return "rows"
    if has_index:
        return "frames"
    return "interleaved" if not leaf.is_contiguous() and leaf.movedim(2, -1).is_contiguous() else "stacks"


def single_frames(stacks: Tensor, valid: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the frames of whole stacks, each once, and the index that makes the stacks of them, as in Rollout.

    Args:
        stacks: [T+1, B, k, *shape], in any memory order. Row t + 1 must continue the stack of row t if valid[t].
        valid: bool [T, B].

    Returns:
        Copies of the frames, [R, B, *shape], columns with fewer filled with zeros, and int32 [T+1, B, k].
    """
    length, batch_size, k = stacks.shape[:3]
    begins = torch.cat([torch.ones(1, batch_size, dtype=torch.bool), ~valid])
    ends = torch.where(begins, k, 1).cumsum(dim=0)
    index = ends.unsqueeze(-1) - k + torch.arange(k)
    frames = stacks.new_zeros(int(ends[-1].max()), batch_size, *stacks.shape[3:])
    columns = torch.arange(batch_size).expand(length, batch_size)
    frames[ends - 1, columns] = stacks[:, :, -1]
    row, column = begins.nonzero(as_tuple=True)
    frames[index[row, column, :-1], column.unsqueeze(-1)] = stacks[row, column, :-1]
    return frames, index.int()


def whole_stacks(frames: Tensor, index: Tensor, *, interleaved: bool) -> Tensor:
    """Returns the stacks [T+1, B, k, *shape] of `single_frames`, with the frames innermost in memory if interleaved."""
    length, batch_size, k = index.shape
    shape = frames.shape[2:]
    columns = torch.arange(batch_size).expand(length, batch_size)
    if interleaved:
        stacks = frames.new_empty(length, batch_size, *shape, k).movedim(-1, 2)
    else:
        stacks = frames.new_empty(length, batch_size, k, *shape)
    for place in range(k):
        stacks[:, :, place] = frames[index[:, :, place].long(), columns]
    return stacks
