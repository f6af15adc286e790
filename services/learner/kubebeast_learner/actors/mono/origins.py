"""Origins of unrolls: which environment has played each of them, and in which order."""

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor

Origin = tuple[int, int, int]
"""Stream, place of the environment in it, and number of the unroll in the stream."""


class Origins:
    """The streams of a training's groups of environments; each life of a group is another stream."""

    def __init__(self) -> None:
        self._streams: dict[int, int] = {}
        self._num_unrolls: dict[int, int] = {}
        self._num_streams = 0

    def begin_streams(self, groups: Iterable[int]) -> None:
        """Begins new streams of these groups: their environments were made anew."""
        for group in groups:
            self._streams[group] = self._num_streams
            self._num_unrolls[group] = 0
            self._num_streams += 1

    def next_unroll(self, group: int, num_envs: int) -> list[Origin]:
        """Returns the origins of the next unroll of each environment of a group."""
        stream, number = self._streams[group], self._num_unrolls[group]
        self._num_unrolls[group] += 1
        return [(stream, env, number) for env in range(num_envs)]


def as_tensor(origins: Sequence[Origin]) -> Tensor:
    """Returns origins as those of a Rollout, int64 [3, B]."""
    return torch.tensor(origins, dtype=torch.int64).T.contiguous()
