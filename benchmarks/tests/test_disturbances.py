"""Schedules of disturbances of a fleet, and the time of its absence."""

import random
from pathlib import Path

import pytest

from benchmarks.disturbances import draw_freezes, draw_kills_of
from benchmarks.fleet import Account, Fleet
from benchmarks.soak import judge


def fleet_of(size: int, folder: Path) -> Fleet:
    """Returns a fleet without processes."""
    fleet = Fleet("127.0.0.1:1", folder, num_envs=1)
    fleet.size = size
    return fleet


def test_who_freezes_thaws_within_the_interval(tmp_path: Path) -> None:
    drawn = draw_freezes(fleet_of(8, tmp_path), random.Random(1), 3, freeze_s=20.0, interval_s=60.0)
    freezes = {each.what.split()[1]: each.at_s for each in drawn if each.what.startswith("freeze")}
    thaws = {each.what.split()[1]: each.at_s for each in drawn if each.what.startswith("thaw")}
    assert len(freezes) == 3 and freezes.keys() == thaws.keys()
    assert all(thaws[place] == pytest.approx(freezes[place] + 20.0) for place in freezes)
    assert max(thaws.values()) <= 60.0


def test_a_freeze_is_no_longer_than_the_interval(tmp_path: Path) -> None:
    drawn = draw_freezes(fleet_of(2, tmp_path), random.Random(1), 9, freeze_s=90.0, interval_s=60.0)
    assert sorted(each.at_s for each in drawn) == [0.0, 0.0, 60.0, 60.0]


def test_kills_are_as_many_as_were_drawn(tmp_path: Path) -> None:
    drawn = draw_kills_of(fleet_of(8, tmp_path), random.Random(1), 0.3, 60.0)
    assert len({each.what for each in drawn}) == 3


def test_frozen_time_counts_as_far_as_it_lies_in_the_phase(tmp_path: Path) -> None:
    fleet = fleet_of(2, tmp_path)
    fleet.freezes = [(0, 5.0, 15.0), (1, 18.0, 40.0)]
    assert fleet.frozen_share(10.0, 20.0) == pytest.approx((5.0 + 2.0) / 20.0)


def account(**counts: int) -> Account:
    names = ("stepped", "sampled", "lost", "trained", "unreadable", "duplicated", "torn", "dropped", "in_flight")
    return Account(**{**dict.fromkeys((*names, "imbalance"), 0), **counts})


def test_a_run_without_its_checkpoints_is_not_sound(tmp_path: Path) -> None:
    verdict = judge(account(), 0, tmp_path)
    assert verdict.lives and verdict.books_balance and not verdict.keeps_checkpoints
    assert not verdict.is_sound


@pytest.mark.parametrize("counts", [{"imbalance": 1}, {"duplicated": 1}, {"torn": 1}])
def test_an_account_that_does_not_add_up_is_not_sound(tmp_path: Path, counts: dict[str, int]) -> None:
    assert not judge(account(**counts), 0, tmp_path).books_balance
    assert not judge(account(), 1, tmp_path).lives
