"""Episodes of a recording: the unrolls of each environment in a row, cut where its episodes end.

Row T of an unroll is row 0 of the environment's next one. The final observation of an episode is a row, and the first
observation of the next episode is the row after it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from kubebeast_learner.algorithm.rollout import Rollout
from kubebeast_learner.distributions import ActionDistribution
from kubebeast_learner.recording.reader import Recording
from kubebeast_learner.recording.shards import RecordingError

Array = NDArray[Any]


class Episode(NamedTuple):
    """N steps of one episode, or of the recorded part of one."""

    observation: Sequence[Array]
    """For each leaf, [N+1, *row_shape]: the last row is the final observation."""
    action: Sequence[Array]
    """For each action leaf, [N, *shape], as the environment took it."""
    rewards: Array
    """float32 [N], not clipped."""
    terminated: bool
    """True if the last step ended it by its own rules."""
    truncated: bool
    """True if the last step cut it off; also if its end is not recorded."""
    is_whole: bool
    """True if its beginning and its end are recorded."""


class _Piece(NamedTuple):
    """The steps of an episode in one unroll, n of them."""

    frames: Sequence[Array]
    """For each leaf, the single frames [R, *shape] of the unroll, or its rows."""
    places: Sequence[Array]
    """For each leaf, [n+1, k]: places of a stack in `frames`; with k = 1 for leaves without stacks."""
    action: Sequence[Array]
    rewards: Array


@dataclass(slots=True)
class _Track:
    """An environment: its episode so far, and the number of its next unroll."""

    next_number: int = 0
    pieces: list[_Piece] = field(default_factory=list)
    has_begin: bool = False

    def end(self, *, terminated: bool = False, truncated: bool = False) -> Iterator[Episode]:
        """Yields the episode, if it has a step. Without a flag, its end is not recorded."""
        pieces, self.pieces = self.pieces, []
        if pieces:
            is_whole = self.has_begin and (terminated or truncated)
            yield _joined(pieces, terminated=terminated, truncated=truncated or not terminated, is_whole=is_whole)
        self.has_begin = False


def episodes_of(recording: Recording) -> Iterator[Episode]:
    """Yields all episodes in the order of their ends, then those that go on after the recording.

    Unrolls that were trained on again, from the replay, are left out. Raises RecordingError for a damaged file, and if
    the unrolls have no origin.
    """
    distribution = ActionDistribution.of(recording.source.env_spec.action)
    tracks: dict[tuple[int, int, int], _Track] = {}
    for entry in recording.entries:
        rollout = recording.unstacked(entry, distribution)
        if rollout.origin is None:
            raise RecordingError(f"{entry.path}: its unrolls have no origin, so episodes cannot be followed")
        origins = rollout.origin[:, rollout.fresh].T.tolist()
        for column, (stream, env, number) in enumerate(origins):
            track = tracks.setdefault((entry.began_at, stream, env), _Track(number))
            if number != track.next_number:
                yield from track.end()
            track.next_number = number + 1
            yield from _follow(track, _Column(rollout, column))
    for track in tracks.values():
        yield from track.end()


class _Column:
    """One unroll of a rollout with stacks as single frames."""

    def __init__(self, rollout: Rollout, column: int) -> None:
        flags = (rollout.valid, rollout.is_first, rollout.terminated, rollout.truncated)
        self.valid, self.is_first, self.terminated, self.truncated = (flag[:, column].numpy() for flag in flags)
        self.length = rollout.unroll_length
        self._frames = [np.ascontiguousarray(leaf[:, column].numpy()) for leaf in rollout.observation]
        rows = torch.arange(self.length + 1).unsqueeze(1)
        self._places = [(index[:, column] if index.shape[2] else rows).numpy().copy() for index in rollout.frame_index]
        self._action = rollout.distribution.to_leaves(rollout.last_action[:, column])
        self._rewards = rollout.rewards[:, column].numpy().copy()

    def piece(self, begin: int, end: int) -> _Piece:
        """Returns the steps from row `begin` to row `end`."""
        rows, steps = slice(begin, end + 1), slice(begin + 1, end + 1)
        places = [of_leaf[rows] for of_leaf in self._places]
        return _Piece(self._frames, places, [leaf[steps] for leaf in self._action], self._rewards[steps])

    def segments(self) -> Iterator[tuple[int, int]]:
        """Yields first and last row of each series of valid transitions; first (0, 0) if there is none at row 0."""
        edges = np.flatnonzero(np.diff(np.concatenate([[False], self.valid, [False]]).astype(np.int8)))
        begins, ends = edges[::2].tolist(), edges[1::2].tolist()
        if not begins or begins[0] > 0:
            yield 0, 0
        yield from zip(begins, ends, strict=True)


def _follow(track: _Track, column: _Column) -> Iterator[Episode]:
    """Adds an unroll to a track; yields the episodes that end in it."""
    for begin, end in column.segments():
        if begin > 0 or not track.pieces:
            track.has_begin = bool(column.is_first[begin])
        if end > begin:
            track.pieces.append(column.piece(begin, end))
        is_final = bool(column.terminated[end] or column.truncated[end])
        goes_on = end == column.length and not is_final
        if goes_on:
            return
        # A row that follows a final one is the first of an episode, unless the stream has ended, or the episode failed.
        is_recorded = is_final and (end == column.length or bool(column.is_first[end + 1]))
        terminated = is_recorded and bool(column.terminated[end])
        yield from track.end(terminated=terminated, truncated=is_recorded and not terminated)


def _joined(pieces: Sequence[_Piece], *, terminated: bool, truncated: bool, is_whole: bool) -> Episode:
    observation = []
    for leaf, places in enumerate(pieces[0].places):
        rows = [piece.frames[leaf][piece.places[leaf][min(number, 1) :]] for number, piece in enumerate(pieces)]
        joined = np.concatenate(rows)
        observation.append(joined if places.shape[1] > 1 else joined[:, 0])
    actions = [np.concatenate([piece.action[leaf] for piece in pieces]) for leaf in range(len(pieces[0].action))]
    rewards = np.concatenate([piece.rewards for piece in pieces])
    return Episode(observation, actions, rewards, terminated, truncated, is_whole)
