"""Each place shows its environment's rows, and actions return to that environment; the fleet is scripted."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from kubebeast_fleet.exchange import Exchange
from kubebeast_native import EnvSpec, LeafSpec

SPEC = EnvSpec("Test-v0", [LeafSpec("", "float32", ())], [LeafSpec("", "int64", (), num_categories=10)])
FIRST, INNER, FINAL, INTERRUPTED, ABSENT = "first", "inner", "final", "interrupted", "absent"


@dataclass
class Stream:
    """A stream of the environments in these slots."""

    slots: Sequence[int]
    answers: list[list[int]] = field(default_factory=list)


@dataclass
class Batch:
    """Rows of streams, each of one kind, with `value` as observation and reward."""

    streams: Sequence[Stream]
    kinds: Sequence[str]
    value: float = 0.0

    @property
    def slots(self) -> NDArray[np.int32]:
        return np.array([slot for stream in self.streams for slot in stream.slots], np.int32)

    def _where(self, *kinds: str) -> NDArray[np.bool_]:
        return np.array([kind in kinds for kind in self.kinds])

    @property
    def observation(self) -> list[NDArray[np.float32]]:
        return [np.where(self._where(INTERRUPTED, ABSENT), 0.0, self.value).astype(np.float32)]

    @property
    def rewards(self) -> NDArray[np.float32]:
        return np.where(self._where(INNER, FINAL), self.value, 0.0).astype(np.float32)

    @property
    def is_first(self) -> NDArray[np.bool_]:
        return self._where(FIRST, ABSENT)

    @property
    def terminated(self) -> NDArray[np.bool_]:
        return self._where(FINAL)

    @property
    def truncated(self) -> NDArray[np.bool_]:
        return self._where(INTERRUPTED, ABSENT)

    @property
    def interrupted(self) -> NDArray[np.bool_]:
        return self._where(INTERRUPTED, ABSENT)

    def split(self) -> list["Batch"]:
        kinds = iter(self.kinds)
        return [Batch([stream], [next(kinds) for _ in stream.slots], self.value) for stream in self.streams]

    def reply(self, actions: Any, policy_logits: Any, baseline: Any, policy_version: int) -> None:
        assert policy_logits.shape == (len(self.slots), 0) and baseline.shape == (len(self.slots),)
        values = iter(actions[0].tolist())
        for stream in self.streams:
            stream.answers.append([next(values) for _ in stream.slots])


class Fleet:
    """Returns prepared batches."""

    def __init__(self, num_envs: int) -> None:
        self.num_envs = num_envs
        self.batches: list[Batch] = []

    def next_batch(self) -> Batch:
        return self.batches.pop(0)


class Table:
    """An exchange of three places and its fleet."""

    def __init__(self, *, split_streams: bool = False) -> None:
        self.fleet = Fleet(3)
        self.exchange = Exchange(self.fleet, SPEC, split_streams=split_streams)  # type: ignore[arg-type]

    def come(self, streams: Sequence[Stream], kinds: Sequence[str], value: float = 0.0) -> None:
        self.fleet.batches.append(Batch(streams, kinds, value))

    def receive(self, count: int = 3) -> list[int]:
        return list(map(int, self.exchange.receive(count)))

    def act(self, *actions: int, places: Sequence[int] = (0, 1, 2)) -> None:
        self.exchange.answer([np.array(actions)], np.array(places))

    def rows(self) -> list[tuple[float, float, bool, bool, bool]]:
        """Returns observation, reward, terminated, truncated and lost of each place."""
        table = self.exchange
        columns = table.observation[0], table.rewards, table.terminated, table.truncated, table.lost
        return list(zip(*(column.tolist() for column in columns), strict=True))


FIRST_ROW = (0.0, 0.0, False, False, False)


def test_rows_stand_at_their_places_and_actions_return_from_there() -> None:
    table, pair, single = Table(), Stream([2, 0]), Stream([1])
    table.come([pair], [FIRST, FIRST])
    table.come([single], [FIRST])
    assert table.receive() == [2, 0, 1]
    assert table.rows() == [FIRST_ROW] * 3

    table.act(7, 8, 9)
    assert (pair.answers, single.answers) == ([[9, 7]], [[8]])
    table.come([single, pair], [INNER, FINAL, INNER], 5.0)
    assert table.receive() == [1, 2, 0]
    assert table.rows() == [
        (5.0, 5.0, False, False, False),
        (5.0, 5.0, False, False, False),
        (5.0, 5.0, True, False, False),
    ]
    assert table.exchange.num_rows == {"first": 3, "step": 3, "lost": 0}


def test_a_lost_environment_is_truncated_before_its_successor_begins() -> None:
    table, gone, other = Table(), Stream([0]), Stream([1, 2])
    table.come([gone, other], [FIRST] * 3, 4.0)
    table.receive()
    table.act(1, 1, 1)

    successor = Stream([0])
    table.come([other, successor], [INNER, INNER, FIRST], 6.0)
    table.receive()
    assert table.rows()[0] == (4.0, 0.0, False, True, True), "the last observation once more"
    assert table.rows()[1] == (6.0, 6.0, False, False, False)
    table.act(2, 2, 2)
    assert (other.answers[-1], successor.answers) == ([2, 2], []), "nobody has seen its first row yet"

    table.come([other], [INNER, INNER], 7.0)
    table.receive()
    assert table.rows()[0] == (6.0, 0.0, False, False, False), "the first row of the successor"
    table.act(3, 3, 3)
    assert successor.answers == [[3]]
    assert table.exchange.num_rows == {"first": 4, "step": 4, "lost": 1}


def test_a_successor_after_the_end_of_an_episode_begins_at_once() -> None:
    table, gone, other = Table(), Stream([0]), Stream([1, 2])
    table.come([gone, other], [FIRST] * 3)
    table.receive()
    table.act(1, 1, 1)
    table.come([gone, other], [FINAL, INNER, INNER], 3.0)
    table.receive()
    table.act(2, 2, 2)

    table.come([Stream([0]), other], [FIRST, INNER, INNER], 5.0)
    table.receive()
    assert table.rows()[0] == (5.0, 0.0, False, False, False)
    assert table.exchange.num_rows["lost"] == 0


def test_a_successor_of_several_waits_until_all_of_its_places_have_seen_their_end() -> None:
    table, left, right, other = Table(), Stream([0]), Stream([1]), Stream([2])
    table.come([left, right, other], [FIRST] * 3, 1.0)
    table.receive()
    table.act(0, 0, 0)
    table.come([left, right, other], [FINAL, INNER, INNER], 2.0)
    table.receive()
    table.act(0, 0, 0)

    successor = Stream([1, 0])
    table.come([successor, other], [FIRST, FIRST, INNER], 3.0)
    table.receive()
    assert table.rows()[:2] == [(2.0, 0.0, False, True, True)] * 2
    table.act(5, 5, 5)
    table.come([other], [INNER], 4.0)
    table.receive()
    assert table.rows()[:2] == [(3.0, 0.0, False, False, False)] * 2
    table.act(6, 7, 8)
    assert successor.answers == [[7, 6]]


def test_an_environment_that_fails_in_its_stream_is_truncated_with_its_last_observation() -> None:
    table, stream = Table(), Stream([0, 1, 2])
    table.come([stream], [FIRST] * 3, 1.0)
    table.receive()
    table.act(0, 0, 0)
    table.come([stream], [INNER, INTERRUPTED, INNER], 2.0)
    table.receive()
    assert table.rows()[1] == (1.0, 0.0, False, True, True)

    table.act(0, 0, 0)
    table.come([stream], [INNER, ABSENT, INNER], 3.0)
    table.receive()
    assert table.rows()[1] == (1.0, 0.0, False, True, True), "it is not back yet"
    table.act(0, 0, 0)
    table.come([stream], [INNER, FIRST, INNER], 4.0)
    table.receive()
    assert table.rows()[1] == (4.0, 0.0, False, False, False)
    assert table.exchange.num_rows == {"first": 4, "step": 6, "lost": 2}


def test_streams_are_answered_by_themselves_where_they_are_split() -> None:
    table, pair, single = Table(split_streams=True), Stream([0, 1]), Stream([2])
    table.come([pair, single], [FIRST] * 3)
    assert table.receive(2) == [0, 1]
    assert table.receive(1) == [2]
    table.act(4, places=[2])
    assert (pair.answers, single.answers) == ([], [[4]])
    table.act(5, places=[1])
    assert pair.answers == [], "its environments step together"
    table.act(6, places=[0])
    assert pair.answers == [[6, 5]]


def test_without_splitting_a_batch_is_answered_as_a_whole() -> None:
    table, left, right = Table(), Stream([0]), Stream([1, 2])
    table.come([left, right], [FIRST] * 3)
    table.receive()
    table.act(1, places=[0])
    assert left.answers == []
    table.act(2, 3, places=[2, 1])
    assert (left.answers, right.answers) == ([[1]], [[3, 2]])


def test_only_a_row_that_is_out_is_answered_and_once() -> None:
    table = Table(split_streams=True)
    table.come([Stream([0, 1, 2])], [FIRST] * 3)
    table.receive(2)
    for places in ([2], [0, 0], [0, 2]):
        with pytest.raises(ValueError, match="an action answers a row that was received, and once"):
            table.act(*[1] * len(places), places=places)
    table.act(1, places=[0])
    with pytest.raises(ValueError, match=r"env_id = \[0\]"):
        table.act(1, places=[0])


def test_rows_that_cannot_come_are_not_waited_for() -> None:
    table = Table(split_streams=True)
    table.come([Stream([0, 1, 2])], [FIRST] * 3)
    table.receive(2)
    for count in (0, 2):
        with pytest.raises(ValueError, match=f"batch_size = {count}: 2 of 3 rows wait for an action"):
            table.receive(count)
