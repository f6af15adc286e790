"""Normalization of the observation before the network."""

from collections.abc import Iterator, Mapping, Sequence

from torch import Tensor, nn

from kubebeast_common.spec.leaves import LeafSpec, describe_leaf
from kubebeast_learner.config import ModelConfig
from kubebeast_learner.errors import ModelSpecError
from kubebeast_learner.models.scales.image_scale import ImageScale
from kubebeast_learner.models.scales.moments import PixelMoments, RunningMoments, Scale
from kubebeast_learner.models.scales.off_scale import OffScaleMoments
from kubebeast_learner.models.torsos.base import InputKind


class ObservationNormaliser(nn.Module):
    """The scales of the leaves that have one; other leaves stay unchanged."""

    def __init__(self, observation: Sequence[LeafSpec], scales: Mapping[int, Scale]) -> None:
        """scales: those of leaves of the observation, by their indices."""
        super().__init__()
        self._listed = list(map(describe_leaf, observation))
        self.names = [self._listed[index] for index, scale in scales.items() if _is_of_numbers(scale)]
        """Readable names of the leaves of numbers."""
        self.leaves = nn.ModuleDict({str(index): scale for index, scale in scales.items()})
        self._has_begun = False

    @property
    def has_begun(self) -> bool:
        """True if all scales have. Waits for the device until then."""
        self._has_begun = self._has_begun or all(bool(scale.has_begun) for _, scale in self._scales())
        return self._has_begun

    def forward(self, observation: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """Returns all leaves [T, B, *row_shape], the normalized ones as floats."""
        leaves = list(observation)
        for index, scale in self._scales():
            leaves[index] = scale(leaves[index])
        return tuple(leaves)

    def add(self, observation: Sequence[Tensor], counted: Tensor) -> None:
        """Adds rows [T, B, *row_shape] of all leaves with a true `counted`, bool [T, B]. Never called in acting."""
        for index, scale in self._scales():
            if scale.goes_on or not self._has_begun:
                scale.add(observation[index], counted)

    def of_numbers(self, observation: Sequence[Tensor]) -> list[Tensor]:
        """Returns the leaves of numbers, not normalized, in the order of `names`."""
        return [observation[index] for index, scale in self._scales() if _is_of_numbers(scale)]

    def describe_off_scale(self) -> list[str]:
        """Returns descriptions of the leaves that are off scale, and of what is. Waits for the device."""
        return [
            f"{what} of {self._listed[index]}"
            for index, scale in self._scales()
            if isinstance(scale, OffScaleMoments | ImageScale) and (what := scale.describe_off_scale())
        ]

    def _scales(self) -> Iterator[tuple[int, Scale]]:
        """Yields the index and the scale of each normalized leaf."""
        for index, scale in self.leaves.items():
            assert isinstance(scale, Scale)
            yield int(index), scale


def make_normaliser(
    config: ModelConfig, observation: Sequence[LeafSpec], kinds: Sequence[InputKind]
) -> ObservationNormaliser | None:
    """Returns the normalization that the settings choose; None if no leaf is of a kind that it concerns.

    Raises ModelSpecError if there is no leaf of numbers for normalise_observations.

    Args:
        config: the settings.
        observation: all leaves.
        kinds: the kind of each leaf to the network; "other" to models and encoders of a user, and masks.
    """
    scales: dict[int, Scale] = {}
    for index, (leaf, kind) in enumerate(zip(observation, kinds, strict=True)):
        if config.normalise_observations and is_number(leaf):
            scales[index] = RunningMoments(leaf.row_shape)
        elif config.normalise_images and kind in ("cells", "pixels"):
            scales[index] = PixelMoments(leaf)
        elif config.normalise_off_scale and kind == "numbers":
            scales[index] = OffScaleMoments(leaf)
        elif config.normalise_off_scale and kind in ("cells", "image"):
            scales[index] = ImageScale(leaf)
    if config.normalise_observations and not any(map(is_number, observation)):
        problem = "normalise_observations = True: no leaf holds numbers that are no image of bytes"
        raise ModelSpecError(f"{problem}: {', '.join(map(describe_leaf, observation))}")
    return ObservationNormaliser(observation, scales) if scales else None


def is_number(leaf: LeafSpec) -> bool:
    """Returns True for a leaf with numbers that are no categories and no image of bytes."""
    if leaf.num_categories > 0 or leaf.dtype == "bool":
        return False
    return leaf.dtype != "uint8" or len(leaf.row_shape) < 2


def _is_of_numbers(scale: Scale) -> bool:
    return isinstance(scale, RunningMoments) and not isinstance(scale, PixelMoments)
