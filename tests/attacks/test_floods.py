"""A connection that floods without a stream is closed and counted; a stream beside it continues."""

from pathlib import Path

import pytest

from kubebeast_conformance.learner.floods import BY_NAME, FLOODS, Flood
from kubebeast_conformance.wire import http2
from tests.attacks.siege import Siege, first_words

NUM_CONNECTIONS = 1000


@pytest.mark.parametrize("flood", FLOODS, ids=lambda flood: flood.name.replace(" ", "-"))
def test_a_flood_is_cut_off_and_counted_beside_a_stream_that_goes_on(siege: Siege, flood: Flood) -> None:
    before = siege.refused()
    with siege.nobody_suffers():
        assert siege.is_cut_off(flood)
        siege.wait_until(lambda: siege.refused() > before)


@pytest.mark.parametrize("name", ["rapid reset of Act", "rapid reset of Check", "endless headers", "pings"])
def test_a_flood_over_many_connections_leaves_streams_and_memory_alone(siege: Siege, name: str) -> None:
    flood = BY_NAME[name]
    with siege.nobody_suffers(), siege.attacked(lambda: siege.is_cut_off(flood)):
        siege.learner.wait_for_steps(40)


@pytest.mark.parametrize("num_pieces", [0, 1])
def test_a_thousand_connections_at_once_leave_streams_and_memory_alone(siege: Siege, num_pieces: int) -> None:
    connections = []
    with siege.nobody_suffers():
        for _ in range(NUM_CONNECTIONS):
            try:
                connections.append(siege.connect())
                first_words(connections[-1], BY_NAME["Act without an end"], num_pieces)
            except (OSError, http2.ClosedError):
                continue
        siege.learner.wait_for_steps(40)
    for connection in connections:
        connection.close()


def test_the_learner_ends_in_time_beneath_a_flood(tmp_path: Path) -> None:
    flood = BY_NAME["rapid reset of Act"]
    with Siege(tmp_path / "siege") as siege, siege.attacked(lambda: siege.is_cut_off(flood)):
        siege.wait_until(lambda: siege.refused() > 0)
        assert siege.learner.terminate() == 0
        assert siege.learner.errors() == []
