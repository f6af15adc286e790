"""Tensors that travel together arrive as they were sent."""

import torch

from kubebeast_learner.machine.packed_tensors import upload_together


def test_tensors_of_all_kinds_arrive_in_one_block() -> None:
    sent = [
        torch.arange(7, dtype=torch.uint8),
        torch.arange(24, dtype=torch.float32).reshape(2, 3, 4).movedim(2, 0),  # strides of their own
        torch.tensor([[True, False]]),
        torch.empty(21, 32, 0, dtype=torch.int32),
        torch.tensor(2**40),
    ]

    arrived = upload_together(sent, torch.device("cpu"))

    for before, after in zip(sent, arrived, strict=True):
        assert after.dtype == before.dtype and torch.equal(after, before) and after.is_contiguous()
    assert len({each.untyped_storage().data_ptr() for each in arrived}) == 1
    sent[0].zero_()
    assert arrived[0].tolist() == list(range(7))
