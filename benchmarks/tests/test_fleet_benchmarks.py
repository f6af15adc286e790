"""Computations of the benchmarks of fleets."""

import random
from pathlib import Path

import numpy as np
import pytest

from benchmarks import bad_neighbours
from benchmarks.bad_neighbours import Window
from benchmarks.fleet import Fleet, draw_kills
from harness.chaos import serial_env


def fleet_of(folder: Path, first_steps: list[tuple[int, float]]) -> Fleet:
    """Returns a fleet without processes, with accounts of first steps at these places and times."""
    for instance, (place, moment) in enumerate(first_steps):
        account = np.array([(place, instance, 1, int(moment * 1e9), 0)], serial_env.ACCOUNT)
        account.tofile(folder / f"{instance}.account")
    return Fleet("127.0.0.1:1", folder, num_envs=1)


def test_a_killed_place_is_away_until_its_first_step_or_its_next_death(tmp_path: Path) -> None:
    fleet = fleet_of(tmp_path, [(0, 5.0), (1, 5.0), (0, 12.0), (0, 12.5), (1, 31.0)])
    fleet.kills = [(0, 10.0), (1, 20.0), (1, 29.0), (0, 38.0)]

    # 0: 10 to 12; 1: 20 to 29, when it was killed again, and 29 to 31; 0: 38 to the end.
    assert fleet.away_s(until=40.0) == pytest.approx(2.0 + 9.0 + 2.0 + 2.0)


def test_a_start_counts_until_the_first_step_of_its_own_process(tmp_path: Path) -> None:
    fleet = fleet_of(tmp_path, [(0, 3.0), (1, 4.5), (0, 14.0), (0, 14.5)])
    fleet.starts = [(0, 1.0), (1, 1.0), (1, 10.0), (0, 11.0)]

    assert fleet.contribution_s() == pytest.approx([2.0, 3.5, 3.0])


def test_environments_are_away_before_their_first_step_and_after_their_last(tmp_path: Path) -> None:
    lives = [(0, 5.0, 15.0), (0, 16.0, 30.0), (1, 5.0, 9.0), (1, 25.0, 30.0)]
    for instance, (place, first_s, last_s) in enumerate(lives):
        account = np.array([(place, instance, 1, int(first_s * 1e9), int(last_s * 1e9))], serial_env.ACCOUNT)
        account.tofile(tmp_path / f"{instance}.account")
    fleet = Fleet("127.0.0.1:1", tmp_path, num_envs=1)
    fleet.size = 2

    # Between 10 and 20 s, place 0 misses 15 to 16, place 1 everything.
    assert fleet.away_share(10.0, 20.0) == pytest.approx((1.0 + 10.0) / 20.0)


@pytest.mark.parametrize(("share", "number"), [(0.0, 0), (0.3, 3), (0.5, 4), (1.0, 8)])
def test_at_least_the_share_is_killed_each_once_and_within_the_interval(share: float, number: int) -> None:
    kills = draw_kills(random.Random(1), num_servers=8, share=share, interval_s=60.0)

    assert len(kills) == len({place for _, place in kills}) == number
    assert kills == sorted(kills)
    assert all(0.0 <= moment <= 60.0 for moment, _ in kills)


def test_a_drift_of_the_machine_is_no_ratio() -> None:
    alone = [Window(steps_per_s=speed, server_cpu=0.5, attacks_per_s=0.0) for speed in (100.0, 120.0, 140.0)]
    beside = [Window(steps_per_s=speed, server_cpu=0.6, attacks_per_s=1000.0) for speed in (110.0, 130.0)]

    row = bad_neighbours.summarize("lying", alone, beside)

    assert (row.ratio, row.worst_ratio) == (1.0, 1.0)
    assert row.server_us_per_attack == pytest.approx(100.0)
