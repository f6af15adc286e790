"""Examples of users' encoders: one that keeps the contract, and one for every mistake."""

from typing import Any

import torch
from torch import Tensor, nn

from kubebeast_learner.models import LeafSpec

SIZE = 6


class Good(nn.Module):
    """A layer over a vector; the steps that the broken encoders override are methods."""

    def __init__(self, leaf: LeafSpec, output_size: int = SIZE, *, gain: float = 1.0) -> None:
        super().__init__()
        self.layer = nn.Linear(leaf.row_shape[-1], output_size)
        nn.init.constant_(self.layer.bias, gain)
        self.output_size: Any = output_size

    def forward(self, rows: Tensor) -> Any:
        return torch.relu(self.layer(rows))


class Fixed(nn.Module):
    """Has no parameters to learn."""

    def __init__(self, leaf: LeafSpec) -> None:
        super().__init__()
        self.output_size = leaf.row_shape[-1]

    def forward(self, rows: Tensor) -> Tensor:
        return rows.sign()


class Dropping(Good):
    """Returns another result at every call in training mode."""

    def forward(self, rows: Tensor) -> Any:
        return nn.functional.dropout(super().forward(rows), training=self.training)


class WrongConstructor(Good):
    def __init__(self) -> None:
        super().__init__(None)  # type: ignore[arg-type]


class WrongLayerSize(Good):
    def __init__(self, leaf: LeafSpec) -> None:
        super().__init__(leaf)
        self.layer = nn.Linear(99, SIZE)


class NoSize(Good):
    def __init__(self, leaf: LeafSpec) -> None:
        super().__init__(leaf)
        del self.output_size


class WrongSize(Good):
    def __init__(self, leaf: LeafSpec) -> None:
        super().__init__(leaf)
        self.output_size = SIZE + 1


class Flattened(Good):
    def forward(self, rows: Tensor) -> Any:
        return super().forward(rows).flatten(0, 1)


class Double(Good):
    def forward(self, rows: Tensor) -> Any:
        return super().forward(rows).double()


class Pair(Good):
    def forward(self, rows: Tensor) -> Any:
        return super().forward(rows), ()


class Infinite(Good):
    def forward(self, rows: Tensor) -> Any:
        return super().forward(rows) / 0


class Mixing(Good):
    """Normalizes over the batch."""

    def forward(self, rows: Tensor) -> Any:
        return super().forward(rows - rows.mean(dim=(0, 1)))


class Detached(Good):
    def forward(self, rows: Tensor) -> Any:
        return super().forward(rows).detach()


class InfiniteGradient(Good):
    def forward(self, rows: Tensor) -> Any:
        features = super().forward(rows)
        return features + (features - features).abs().sqrt()


class HoldsAGenerator(Good):
    def __init__(self, leaf: LeafSpec) -> None:
        super().__init__(leaf)
        self.frames = (i for i in range(3))


NOT_A_CLASS = 3
