"""Streams are assigned by weight, move rarely, and leave learners that are gone."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubebeast_broker.assignment.assigner import HORIZON_S, MIN_STAY_S, Assigner
from kubebeast_broker.assignment.shares import Claim
from tests.unit.broker.assignment.simulated_fleet import SimulatedFleet

FIVE_MINUTES_S = 300.0
TOLERANCE = 0.05


def playing(num_streams: int, *learners: str) -> Assigner:
    """Returns learners of equal weight and streams that play with the first one."""
    assigner = Assigner(0.0)
    assigner.add_learner(learners[0], learners[0], Claim(1.0, 0))
    for number in range(num_streams):
        assigner.add_stream(f"{number}")
    assigner.assign()
    for key in assigner.streams:
        assigner.update_stream(key, learners[0], ())
    for name in learners[1:]:
        assigner.add_learner(name, name, Claim(1.0, 0))
    return assigner


@pytest.mark.parametrize("episode_s", [1.0, 20.0])
@pytest.mark.parametrize(
    ("weights", "num_streams"),
    [
        ((1, 1, 1, 1), 16),
        ((1, 1, 1), 16),
        ((1, 2), 5),
        ((1, 2, 3, 4), 16),
        ((1, 10), 16),
        ((1, 3, 7), 50),
    ],
)
def test_stream_seconds_over_five_minutes_follow_the_weights(
    weights: tuple[int, ...], num_streams: int, episode_s: float
) -> None:
    by_name = {f"{number}": float(weight) for number, weight in enumerate(weights)}
    fleet = SimulatedFleet(by_name, num_streams, episode_s)
    fleet.play(30.0)
    before = dict(fleet.stream_seconds)
    fleet.play(FIVE_MINUTES_S)

    assert fleet.errors(before, by_name) == pytest.approx(dict.fromkeys(by_name, 0.0), abs=TOLERANCE)


@pytest.mark.parametrize("seed", range(30))
def test_they_follow_the_weights_while_the_fleet_shrinks_and_grows_at_any_moment(seed: int) -> None:
    weights = {"a": 1.0, "b": 2.0, "c": 3.0, "d": 4.0}
    fleet = SimulatedFleet(weights, 16, episode_s=20.0, seed=seed)
    fleet.play(20.0 + 3.0 * seed)
    before = dict(fleet.stream_seconds)
    fleet.play(100.0)
    fleet.scale(4)
    fleet.play(100.0)
    for num_streams in (8, 12, 16):
        fleet.scale(num_streams)
        fleet.play(FIVE_MINUTES_S / 9)

    assert fleet.errors(before, weights) == pytest.approx(dict.fromkeys(weights, 0.0), abs=TOLERANCE)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(1, 8), min_size=1, max_size=5), st.integers(1, 20), st.integers(0, 100))
def test_no_stream_moves_before_it_has_stayed(weights: list[int], num_streams: int, seed: int) -> None:
    fleet = SimulatedFleet({f"{n}": float(weight) for n, weight in enumerate(weights)}, num_streams, seed=seed)
    fleet.play(120.0)

    for times in fleet.moves_s.values():
        assert all(later - earlier >= MIN_STAY_S for earlier, later in itertools.pairwise(times))


def test_shares_that_are_whole_numbers_lead_to_no_moves() -> None:
    fleet = SimulatedFleet({"a": 1.0, "b": 3.0}, 16)
    fleet.play(FIVE_MINUTES_S)

    assert fleet.counts() == {"a": 4, "b": 12}
    assert fleet.assigner.num_moves == 0


def test_a_fraction_of_a_stream_moves_no_more_than_one_stream_in_five_seconds() -> None:
    fleet = SimulatedFleet({"a": 1.0, "b": 1.0, "c": 1.0}, 16)
    fleet.play(FIVE_MINUTES_S)

    assert 1 <= fleet.assigner.num_moves <= FIVE_MINUTES_S / HORIZON_S


def test_a_new_learner_takes_only_its_share_from_the_others() -> None:
    fleet = SimulatedFleet({"a": 1.0, "b": 1.0}, 12)
    fleet.play(20.0)
    fleet.assigner.add_learner("c", "c", Claim(1.0, 0))
    fleet.assigner.assign()

    assert fleet.counts() == {"a": 4, "b": 4, "c": 4}
    assert fleet.assigner.num_moves == 4


def test_the_streams_of_a_learner_that_is_removed_go_to_the_others_and_no_others_move() -> None:
    fleet = SimulatedFleet({"a": 1.0, "b": 1.0, "c": 2.0}, 16)
    fleet.play(20.0)
    stay = {key for key, stream in fleet.assigner.streams.items() if stream.learner != "c"}
    before = {key: fleet.assigner.streams[key].learner for key in stay}
    fleet.assigner.remove_learner("c")
    fleet.assigner.assign()

    assert fleet.counts() == {"a": 8, "b": 8}
    assert {key: fleet.assigner.streams[key].learner for key in stay} == before


def test_a_fleet_that_shrinks_and_grows_is_divided_again() -> None:
    fleet = SimulatedFleet({"a": 1.0, "b": 3.0}, 16)
    fleet.play(20.0)
    fleet.scale(4)
    fleet.play(20.0)
    assert fleet.counts() == {"a": 1, "b": 3}
    fleet.scale(16)
    fleet.play(20.0)
    assert fleet.counts() == {"a": 4, "b": 12}


def test_streams_that_play_with_a_learner_that_is_away_stay_and_the_others_leave_it() -> None:
    assigner = playing(4, "a", "b")
    assigner.update_stream("0", "", ())
    assigner.learners["a"].is_away = True
    assigner.assign()

    assert {key: stream.learner for key, stream in assigner.streams.items()} == {"0": "b", "1": "a", "2": "a", "3": "a"}


def test_a_learner_that_comes_back_keeps_its_streams() -> None:
    assigner = playing(4, "a", "b")
    assigner.learners["a"].is_away = True
    assigner.assign()
    assigner.add_learner("a", "a", Claim(1.0, 0))
    assigner.assign()

    assert all(stream.learner == "a" for stream in assigner.streams.values())


def test_a_stream_that_plays_already_is_assigned_to_the_learner_it_plays_with() -> None:
    assigner = Assigner(0.0)
    for number in range(3):
        assigner.add_stream(f"{number}")
        assigner.update_stream(f"{number}", "b" if number else "a", ())
    assigner.waits_for_learners = True
    assigner.add_learner("a", "a", Claim(1.0, 0))
    assigner.assign()
    assigner.add_learner("b", "b", Claim(1.0, 0))
    assigner.assign()

    assert {key: stream.learner for key, stream in assigner.streams.items()} == {"0": "a", "1": "b", "2": "b"}


def test_a_stream_is_not_assigned_to_a_learner_that_refuses_it() -> None:
    assigner = playing(4, "a", "b")
    for key in assigner.streams:
        assigner.update_stream(key, "", {"a"})
    assigner.assign()

    assert all(stream.learner == "b" for stream in assigner.streams.values())


def test_a_stream_of_one_run_is_assigned_to_that_run_only() -> None:
    assigner = playing(0, "a", "b")
    assigner.add_stream("only b", wanted_run="b")
    assigner.add_stream("only c", wanted_run="c")
    assigner.assign()

    assert {key: stream.learner for key, stream in assigner.streams.items()} == {"only b": "b", "only c": ""}


def test_debts_of_learners_even_out() -> None:
    fleet = SimulatedFleet({"a": 1.0, "b": 2.0, "c": 4.0}, 16)
    fleet.play(60.0)

    assert sum(learner.debt_s for learner in fleet.assigner.learners.values()) == pytest.approx(0.0, abs=1e-6)
