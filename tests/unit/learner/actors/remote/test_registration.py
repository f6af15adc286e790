"""A learner reports how many streams it could use, and an address that env-servers can dial."""

from types import SimpleNamespace
from typing import Any

import pytest

from kubebeast_learner.actors.remote.registration import advertised, usable_streams


def snapshot(starved_ratio: float | None, lag: float = 0.0) -> Any:
    return SimpleNamespace(
        starved_ratio=starved_ratio, inference_busy_ratio=0.1, last_update=SimpleNamespace(policy_lag=lag)
    )


@pytest.mark.parametrize(
    ("parked", "newest", "usable"),
    [(0, snapshot(0.5), 8), (0, snapshot(0.0), 4), (2, snapshot(0.0), 2), (4, snapshot(0.0), 1)],
    ids=["starved", "balanced", "half held back", "all held back"],
)
def test_the_demand_is_the_number_of_streams_that_could_be_used(parked: int, newest: Any, usable: int) -> None:
    assert usable_streams({"streams": 4, "streams_parked": parked}, newest) == usable


@pytest.mark.parametrize(("streams", "newest"), [(0, snapshot(0.5)), (4, None), (4, snapshot(None))])
def test_a_demand_that_is_unknown_is_any_number(streams: int, newest: Any) -> None:
    assert usable_streams({"streams": streams, "streams_parked": 0}, newest) == 0


@pytest.mark.parametrize(
    ("bound", "address"),
    [
        ("127.0.0.1:4431", "127.0.0.1:4431"),
        ("[::]:4431", ":4431"),
        ("0.0.0.0:4431", ":4431"),
        ("unix:/tmp/socket", "unix:/tmp/socket"),
    ],
)
def test_an_address_of_all_hosts_is_completed_by_the_broker(bound: str, address: str) -> None:
    assert advertised(bound) == address
