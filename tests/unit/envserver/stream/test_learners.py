"""Streams spread evenly over the learners, and few of them move if a learner comes or goes."""

import contextlib
import socket
import threading
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from kubebeast_envserver.stream import learners
from kubebeast_envserver.stream.learners import PATIENCE_S, Learner, Learners, UnresolvedError, by_preference

WAIT_S = 300.0
STREAMS = [f"stream-{index}" for index in range(64)]


def named(count: int) -> list[Learner]:
    return [Learner(f"10.0.0.{index}:4431") for index in range(count)]


def preferred(count: int, streams: Sequence[str] = STREAMS) -> dict[str, str]:
    """Returns the address that each stream prefers among `count` learners."""
    return {stream: by_preference(stream, named(count))[0].address for stream in streams}


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize("count", [2, 3, 4, 5])
def test_streams_are_spread_as_evenly_as_chance_does(count: int) -> None:
    """Within 2.5 standard deviations of the binomial distribution: of 64 streams on two learners 22 to 42 each."""
    shares = Counter(preferred(count).values())
    p = 1 / count
    deviation = (len(STREAMS) * p * (1 - p)) ** 0.5
    assert len(shares) == count
    assert all(abs(share - len(STREAMS) * p) <= 2.5 * deviation for share in shares.values())


def test_only_the_streams_of_a_learner_that_comes_move_and_all_of_them_to_it() -> None:
    many = [f"stream-{index}" for index in range(2000)]
    for count in (1, 2, 3, 4):
        before, after = preferred(count, many), preferred(count + 1, many)
        moved = {stream for stream in many if before[stream] != after[stream]}
        assert {after[stream] for stream in moved} == {named(count + 1)[-1].address}
        assert len(moved) == pytest.approx(len(many) / (count + 1), rel=0.1)


def test_the_order_of_the_list_changes_nothing() -> None:
    for stream in STREAMS:
        assert by_preference(stream, named(4)) == by_preference(stream, named(4)[::-1])


def test_every_port_and_every_address_of_a_name_is_a_learner() -> None:
    clock = Clock()
    found = Learners(
        ("dns:learners:4431-4432", "other:1", "unix:/s", "dns:[::1]:7"),
        "stream",
        resolve=lambda host: {"learners": ["10.0.0.1", "10.0.0.2", "10.0.0.1"], "::1": ["::1"]}[host],
        clock=clock,
    )
    dialed = set()
    for clock.now in (PATIENCE_S * index for index in range(7)):
        dialed.add(found.next())
        found.note_end(was_welcomed=False)
    assert dialed == {
        Learner("10.0.0.1:4431", "learners"),
        Learner("10.0.0.1:4432", "learners"),
        Learner("10.0.0.2:4431", "learners"),
        Learner("10.0.0.2:4432", "learners"),
        Learner("other:1"),
        Learner("unix:/s"),
        Learner("[::1]:7"),
    }


def test_others_are_tried_in_order_only_after_the_patience_with_the_preferred_one() -> None:
    clock = Clock()
    order = by_preference("stream", named(3))
    found = Learners([learner.address for learner in named(3)], "stream", clock=clock)
    dialed = []
    for clock.now in (0.0, 1.0, PATIENCE_S - 0.1, PATIENCE_S, PATIENCE_S + 1, PATIENCE_S + 2, PATIENCE_S + 3):
        dialed.append(found.next())
        found.note_end(was_welcomed=False)
    assert dialed == [order[index] for index in (0, 0, 0, 1, 2, 0, 1)]


def test_a_stream_that_was_welcomed_elsewhere_begins_with_the_preferred_one_again() -> None:
    clock = Clock()
    found = Learners([learner.address for learner in named(2)], "stream", clock=clock)
    first = found.next()
    found.note_end(was_welcomed=False)
    clock.now = PATIENCE_S
    assert found.next() != first
    found.note_end(was_welcomed=True)
    assert found.next() == first


def test_a_name_that_cannot_be_resolved_keeps_its_addresses_and_without_any_is_an_error() -> None:
    records = {"learners": ["10.0.0.1"]}
    found = Learners(["dns:learners:4431"], "stream", resolve=lambda host: records[host] if records else unknown(host))
    assert found.next().address == "10.0.0.1:4431"
    records.clear()
    assert found.next().address == "10.0.0.1:4431"
    with pytest.raises(UnresolvedError, match="no address behind dns:learners:4431"):
        Learners(["dns:learners:4431"], "stream", resolve=unknown).next()


def unknown(host: str) -> Sequence[str]:
    raise OSError(f"no such name: {host}")


def test_a_stream_leaves_for_the_preferred_learner_as_soon_as_that_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learners, "LOOK_EVERY_S", 0.001)
    with socket.socket() as home, socket.create_server(("127.0.0.1", 0)) as away:
        home.bind(("127.0.0.1", 0))
        addresses = [f"127.0.0.1:{listener.getsockname()[1]}" for listener in (home, away)]
        both = [Learner(address) for address in addresses]
        stream = next(name for name in STREAMS if by_preference(name, both)[0] == both[0])
        found, left = Learners(addresses, stream), threading.Event()
        assert found.next() == both[0]
        with found.calling_home(both[1], left.set):
            assert not left.is_set()
            home.listen()
            assert left.wait(WAIT_S)


def test_dials_that_fail_keep_no_stream_from_going_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learners, "LOOK_EVERY_S", 0.001)
    with socket.create_server(("127.0.0.1", 0)) as home, socket.create_server(("127.0.0.1", 0)) as away:
        addresses = [f"127.0.0.1:{listener.getsockname()[1]}" for listener in (home, away)]
        both = [Learner(address) for address in addresses]
        stream = next(name for name in STREAMS if by_preference(name, both)[0] == both[0])
        found, left = Learners(addresses, stream), threading.Event()
        for _ in range(30):
            with found.calling_home(found.next(), left.set):
                pass
            found.note_end(was_welcomed=False)
        assert not left.is_set()
        with found.calling_home(both[1], left.set):
            assert left.wait(WAIT_S)


def test_a_socket_that_nobody_made_is_nobody_who_listens(tmp_path: Path) -> None:
    path = tmp_path / "pool.sock"
    assert not Learner(f"unix:{path}").is_listening()
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as listener:
        listener.bind(str(path))
        assert Learner(f"unix:{path}").is_listening()
