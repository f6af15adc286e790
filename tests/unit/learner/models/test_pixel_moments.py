"""Running statistics normalize images of bytes pixel by pixel."""

import math

import pytest
import torch

from kubebeast_learner.models.scales import moments as moments_module
from kubebeast_learner.models.scales.moments import LIMIT, PixelMoments, RunningMoments
from kubebeast_learner.models.scales.observation import ObservationNormaliser
from tests.unit.learner.algorithm.learning_data import Leaf

FRAMES = Leaf((4, 6, 5), "uint8", "screen", frame_stack=4)
ALL = torch.ones(7, 5, dtype=torch.bool)


def of_pixels(image: Leaf) -> ObservationNormaliser:
    return ObservationNormaliser([image], {0: PixelMoments(image)})


def screens(*, interleaved: bool, rows: int = 7) -> torch.Tensor:
    """Returns stacks of which column 0 never changes, column 1 rarely, and the others often: [rows, 5, 4, 6, 5]."""
    pixels = torch.randint(256, (rows, 5, 4, 6, 5), dtype=torch.uint8)
    pixels[..., 0] = 200
    pixels[..., 1] = torch.where(torch.rand(rows, 5, 4, 6) < 0.02, 255, 10).to(torch.uint8)
    return pixels.permute(0, 1, 3, 4, 2).contiguous().permute(0, 1, 4, 2, 3) if interleaved else pixels


@pytest.mark.parametrize("interleaved", [False, True])
def test_pixels_are_normalised_by_the_newest_frames(interleaved: bool) -> None:
    torch.manual_seed(0)
    normaliser = of_pixels(FRAMES)
    batches = [screens(interleaved=interleaved) for _ in range(2)]
    for batch in batches:
        normaliser.add((batch,), ALL)
    newest = torch.cat(batches)[:, :, -1].flatten(0, 1).double()
    (seen,) = normaliser((batches[0],))
    scale = (newest.var(dim=0, correction=0) + 25.5**2).sqrt()
    expected = (batches[0].double() - newest.mean(dim=0)) / scale
    torch.testing.assert_close(seen, expected.float())
    assert seen.stride() == batches[0].stride()
    assert seen[..., 0].abs().max() < 1e-5
    assert seen.abs().max() <= LIMIT
    assert normaliser.of_numbers((batches[0],)) == []


@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize("leaf", [FRAMES, Leaf((7, 9, 3), "uint8")])
def test_pixels_are_normalised_alike_in_blocks_of_any_size(
    interleaved: bool, leaf: Leaf, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(0)
    normaliser = of_pixels(leaf)
    batch = torch.randint(256, (3, 5, *leaf.row_shape), dtype=torch.uint8)
    if leaf is FRAMES:
        batch = screens(interleaved=interleaved, rows=3)
    normaliser.add((batch,), torch.ones(3, 5, dtype=torch.bool))
    (at_once,) = normaliser((batch,))
    for size in (0, 4 * math.prod(leaf.row_shape), 15 * math.prod(leaf.row_shape)):
        monkeypatch.setattr(moments_module, "_BLOCK", size // torch.get_num_threads())
        (seen,) = normaliser((batch,))
        assert torch.equal(seen, at_once)
        assert seen.stride() == at_once.stride() == batch.stride()


def test_pixels_become_bfloat16_for_convolutions_in_bfloat16() -> None:
    torch.manual_seed(0)
    normaliser = of_pixels(FRAMES)
    batch = screens(interleaved=True)
    normaliser.add((batch,), ALL)
    (exact,) = normaliser((batch,))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        (seen,) = normaliser((batch,))
    assert torch.equal(seen, exact.bfloat16())


def test_pixels_of_a_large_batch_are_a_sample_of_its_rows() -> None:
    torch.manual_seed(0)
    normaliser = of_pixels(FRAMES)
    batch = screens(interleaved=True, rows=500)
    normaliser.add((batch,), torch.ones(500, 5, dtype=torch.bool))
    (moments,) = normaliser.leaves.values()
    assert isinstance(moments, RunningMoments)
    assert 200 <= moments.count.item() <= 300
    torch.testing.assert_close(moments.mean, batch[::9, :, -1].double().mean(dim=(0, 1)))


def test_one_byte_is_never_beyond_the_limit() -> None:
    normaliser = of_pixels(Leaf((3, 4), "uint8"))
    normaliser.add((torch.zeros(7, 5, 3, 4, dtype=torch.uint8),), ALL)
    (seen,) = normaliser((torch.full((1, 1, 3, 4), 255, dtype=torch.uint8),))
    torch.testing.assert_close(seen, torch.full((1, 1, 3, 4), LIMIT))
