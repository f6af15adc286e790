"""Runs have cores of their own if there are enough, and no more runs than a container's limit has cores."""

import pytest

from kubebeast_common.process.cpu_time import CpuTime
from kubebeast_sweep import sweep


@pytest.mark.parametrize(
    ("num_places", "shares"),
    [(1, [[0, 1, 2, 3]]), (2, [[0, 2], [1, 3]]), (3, [[0, 3], [1], [2]]), (5, [[0], [1], [2], [3], [0]])],
)
def test_places_share_the_cores(num_places: int, shares: list[list[int]]) -> None:
    assert sweep.shares_of([0, 1, 2, 3], num_places) == shares


@pytest.mark.parametrize(("limit", "places"), [(2.5, 2), (0.5, 1), (64.0, 8), (None, 8)])
def test_a_limit_of_the_container_bounds_the_runs_at_once(
    monkeypatch: pytest.MonkeyPatch, limit: float | None, places: int
) -> None:
    monkeypatch.setattr(sweep, "os_cores", lambda: list(range(8)))
    monkeypatch.setattr(sweep, "read_cpu_time", lambda: None if limit is None else CpuTime(1.0, limit))

    assert sweep.num_places() == places
