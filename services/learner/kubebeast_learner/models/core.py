"""The core between torso and heads: an LSTM, or nothing.

A core state is a tuple of tensors [num_layers, B, size], () for the empty core.
"""

import torch
from torch import Tensor, nn

CoreState = tuple[Tensor, ...]


class Core(nn.Module):
    """The empty core: features pass through."""

    output_size: int
    state_shapes: tuple[tuple[int, int], ...] = ()
    """(num_layers, size) of every state tensor."""

    def __init__(self, input_size: int) -> None:
        super().__init__()
        self.output_size = input_size

    def forward(self, features: Tensor, is_first: Tensor, core_state: CoreState) -> tuple[Tensor, CoreState]:
        """features float32 [T, B, input_size] to [T, B, output_size]; is_first bool [T, B]."""
        return features, core_state


class LSTMCore(Core):
    """An LSTM whose state is zeroed before every row with is_first."""

    def __init__(self, input_size: int, hidden_size: int, num_layers: int = 1) -> None:
        super().__init__(input_size)
        self.lstm = nn.LSTM(input_size, hidden_size, num_layers)
        self.output_size = hidden_size
        self.state_shapes = ((num_layers, hidden_size), (num_layers, hidden_size))

    def forward(self, features: Tensor, is_first: Tensor, core_state: CoreState) -> tuple[Tensor, CoreState]:
        """As in Core; core_state is (h, c). The rows between two starts of episodes run as one sequence."""
        num_rows = features.shape[0]
        later_starts = is_first[1:].any(dim=1).nonzero().flatten().tolist() if num_rows > 1 else []
        starts = [0, *(row + 1 for row in later_starts)]
        outputs = []
        for start, end in zip(starts, [*starts[1:], num_rows], strict=True):
            ended = is_first[start].view(1, -1, 1)
            h, c = (tensor.masked_fill(ended, 0.0) for tensor in core_state)
            output, core_state = self.lstm(features[start:end], (h, c))
            outputs.append(output)
        return torch.cat(outputs), core_state


def keep_cores_eager() -> None:
    """Leaves LSTM cores out of everything that is compiled from now on.

    Which rows start an episode is data: a compiled graph would be broken there in any case. No decorator, because the
    import of the compiler takes a second and 70 MiB of every process, also of those that only act.
    """
    LSTMCore.forward = torch.compiler.disable(LSTMCore.forward)  # type: ignore[method-assign, no-untyped-call]
