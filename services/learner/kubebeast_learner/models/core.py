"""The core between torso and heads: an LSTM, or the empty core.

A core state is a tuple of tensors [num_layers, B, size], () for the empty core.
"""

import torch
from torch import Tensor, nn

CoreState = tuple[Tensor, ...]


class Core(nn.Module):
    """The empty core: features pass through unchanged."""

    output_size: int
    state_shapes: tuple[tuple[int, int], ...] = ()
    """(num_layers, size) of every state tensor."""

    def __init__(self, input_size: int) -> None:
        super().__init__()
        self.output_size = input_size

    def forward(self, features: Tensor, is_first: Tensor, core_state: CoreState) -> tuple[Tensor, CoreState]:
        """Maps features float32 [T, B, input_size] to [T, B, output_size]; is_first is bool [T, B]."""
        return features, core_state


class LSTMCore(Core):
    """An LSTM, with its state zeroed before every row with is_first."""

    def __init__(self, input_size: int, hidden_size: int, num_layers: int = 1) -> None:
        super().__init__(input_size)
        self.lstm = nn.LSTM(input_size, hidden_size, num_layers)
        self.output_size = hidden_size
        self.state_shapes = ((num_layers, hidden_size), (num_layers, hidden_size))

    def forward(self, features: Tensor, is_first: Tensor, core_state: CoreState) -> tuple[Tensor, CoreState]:
        """See `Core.forward`; core_state is (h, c). The rows between two starts of episodes run as one sequence."""
        starts = _starts_of_sequences(is_first)
        outputs = []
        for start, end in zip(starts, [*starts[1:], len(is_first)], strict=True):
            ended = is_first[start].view(1, -1, 1)
            h, c = (tensor.masked_fill(ended, 0.0) for tensor in core_state)
            output, core_state = self.lstm(features[start:end], (h, c))
            outputs.append(output)
        return torch.cat(outputs), core_state


def _starts_of_sequences(is_first: Tensor) -> list[int]:
    """Returns the rows of [T, B] before which a state may be zeroed, row 0 included."""
    if is_first.is_cuda and torch.cuda.is_current_stream_capturing():
        return list(range(len(is_first)))  # a graph has to do for all batches
    later = is_first[1:].any(dim=1).nonzero().flatten().tolist() if len(is_first) > 1 else []
    return [0, *(row + 1 for row in later)]


def keep_cores_eager() -> None:
    """Excludes LSTM cores from everything that is compiled afterwards.

    The rows that start an episode depend on data, so a compiled graph would break there anyway. Not a decorator,
    because importing the compiler takes a second and 70 MiB in every process, including those that only act.
    """
    LSTMCore.forward = torch.compiler.disable(LSTMCore.forward)  # type: ignore[method-assign, no-untyped-call]
