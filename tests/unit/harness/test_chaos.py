"""The chaos harness counts rows by their serial numbers, and a seed determines its faults."""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from harness.chaos import flaky_env, serial_env, serials
from harness.chaos.serials import Tally
from tests.integration.chaos import storm
from tests.integration.chaos.storm import Fault

T = 4
FIRST, SECOND = 7, serials.MAX_INSTANCE - 1


def unroll(instance: int, first: int) -> NDArray[np.float32]:
    """Returns T + 1 consecutive rows, float32 [T+1, 1, 4]."""
    return np.stack([serials.encode(instance, first + t) for t in range(T + 1)])[:, np.newaxis]


def everything(observation: NDArray[np.float32]) -> NDArray[np.bool_]:
    return np.ones((len(observation) - 1, observation.shape[1]), np.bool_)


def delivered(*batches: NDArray[np.float32]) -> Tally:
    return serials.tally([serials.runs(batch, everything(batch)) for batch in batches])


@pytest.mark.parametrize("t", [0, 1, serials.WORD - 1])
@pytest.mark.parametrize("instance", [0, FIRST, SECOND])
def test_a_row_says_who_it_is(instance: int, t: int) -> None:
    assert [int(field) for field in serials.decode(serials.encode(instance, t))] == [instance, t, True]


def test_any_changed_bit_of_a_row_shows() -> None:
    row = serials.encode(SECOND - 12345, 678).view(np.uint32)
    for word in range(serials.ROW_SIZE):
        for bit in range(32):
            changed = row.copy()
            changed[word] ^= np.uint32(1 << bit)
            with np.errstate(invalid="ignore"):
                assert not serials.decode(changed.view(np.float32))[2], (word, bit)


def test_unrolls_that_share_their_last_row_are_delivered_once() -> None:
    batch = np.concatenate([unroll(FIRST, 0), unroll(SECOND, 0)], axis=1)

    assert delivered(batch, unroll(FIRST, T), unroll(SECOND, 2 * T)) == Tally(4 * T, 0, 0, 0)


def test_the_newest_frame_of_a_stack_counts_if_the_stack_is_whole() -> None:
    rows = [serials.encode(FIRST, t) for t in (4, 4, 4, 5, 6)]
    growing, full, skipping, mixed = rows[1:4], rows[2:5], [*rows[2:4], serials.encode(FIRST, 7)], rows[:3]
    mixed[0] = serials.encode(SECOND, 4)

    newest = serials.newest(np.array([growing, full, skipping, mixed]))

    instance, t, readable = serials.decode(newest)
    assert readable.tolist() == [True, True, False, False]
    assert (instance[:2] == FIRST).all() and t[:2].tolist() == [5, 6]


def test_huge_observations_are_steps_as_any_other_but_nobody_can_read_them(tmp_path: Path) -> None:
    env = flaky_env.Flaky(str(tmp_path), every={"raise": 0, "nan": 0, "hang": 0}, huge_every=2)
    env.reset(seed=1)
    rows = [env.step(np.int64(0))[0] for _ in range(20)]
    assert flaky_env.num_huge(tmp_path) == 0
    flaky_env.unleash(tmp_path)
    rows = [env.step(np.int64(0))[0] for _ in range(20)]
    num_huge = sum(bool((row == np.float32(flaky_env.HUGE)).all()) for row in rows)
    assert 0 < num_huge == flaky_env.num_huge(tmp_path) < 20
    assert np.isfinite(rows).all()
    assert serial_env.accounts(tmp_path)["decisions"].sum() == 40


def test_flaky_environments_fail_in_their_ways_once_they_may_and_a_failed_step_is_none(tmp_path: Path) -> None:
    env = flaky_env.Flaky(str(tmp_path), every={"raise": 0, "nan": 2, "hang": 0})
    env.reset(seed=1)
    for _ in range(20):
        assert np.isfinite(env.step(np.int64(0))[0]).all()
    flaky_env.unleash(tmp_path)

    num_failed = sum(bool(np.isnan(env.step(np.int64(0))[0]).all()) for _ in range(20))

    assert 0 < num_failed < 20
    assert serial_env.accounts(tmp_path)["decisions"].tolist() == [40 - num_failed]
    assert flaky_env.failures(tmp_path) == {"raise": 0, "nan": 1, "hang": 0}, "one a life"


def test_transitions_that_come_again_are_counted() -> None:
    assert delivered(unroll(FIRST, 0), unroll(FIRST, T - 1), unroll(FIRST, 0)) == Tally(2 * T - 1, T + 1, 0, 0)


def test_rows_that_do_not_follow_each_other_are_torn() -> None:
    mixed, skipping = unroll(FIRST, 0), unroll(SECOND, 0)
    mixed[2] = serials.encode(SECOND, 99)
    skipping[-1] = serials.encode(SECOND, T + 1)

    assert delivered(mixed, skipping) == Tally(2 * T - 3, 0, 3, 0)


def test_changed_rows_are_unreadable_and_not_torn() -> None:
    changed = unroll(FIRST, 0)
    changed[0, 0, 2] = np.nan

    assert delivered(changed) == Tally(T - 1, 0, 0, 1)


def test_padding_is_no_transition() -> None:
    rows = unroll(FIRST, 0)
    valid = everything(rows)
    valid[1:] = False

    assert serials.runs(rows, valid).tolist() == [[FIRST, 0, 0]]


@pytest.mark.parametrize("seed", range(20))
def test_a_storm_leaves_one_place_well_and_heals_the_others(seed: int) -> None:
    events = storm.draw(seed, num_places=3, num_faults=10)

    suffering: dict[int, Fault] = {}
    for event in events:
        if event.heals:
            assert suffering.pop(event.place) is event.fault
        else:
            assert event.place not in suffering
            suffering[event.place] = event.fault
        assert len(suffering) < 3
    assert suffering == {}
    assert sum(not event.heals for event in events) == 10


def test_a_seed_draws_the_same_storm_again() -> None:
    assert storm.draw(1, 4, 30) == storm.draw(1, 4, 30) != storm.draw(2, 4, 30)
