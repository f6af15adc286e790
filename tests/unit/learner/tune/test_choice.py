"""The chosen settings stay within bounds and change in the right direction with the measurements."""

from collections.abc import Sequence

import pytest

from kubebeast_learner.tune.choice import Expected, best_of_each_size, choices, choose, expect, most_actors
from kubebeast_learner.tune.pieces import LearnerCost, Pieces
from tests.unit.learner.tune.measured import env_servers, learner, machine

MOST_ACTORS = 256


def expected(pieces: Pieces, most: int = MOST_ACTORS) -> list[Expected]:
    return [expect(choice, pieces) for choice in choices(pieces, most)]


def chosen(pieces: Pieces, most: int = MOST_ACTORS) -> Expected:
    return choose(expected(pieces, most))


def test_dearer_environments_never_get_fewer_processes() -> None:
    servers = [
        chosen(machine(16, env_step_us, [learner(5.0)])).choice.num_servers
        for env_step_us in (1, 10, 50, 100, 200, 400, 800, 1600, 10_000)
    ]

    assert servers == sorted(servers)
    assert servers[0] < servers[-1]


def test_dearer_environments_are_never_expected_to_be_faster() -> None:
    speeds = [chosen(machine(8, cost, [learner(5.0)])).steps_per_s for cost in (1, 10, 100, 1000, 10_000)]

    assert speeds == sorted(speeds, reverse=True)


def test_more_cores_are_never_expected_to_be_slower() -> None:
    speeds = [chosen(machine(cores, 400, [learner(5.0)])).steps_per_s for cores in (1, 2, 4, 8, 32)]

    assert speeds == sorted(speeds)
    assert speeds[0] < speeds[-1]


@pytest.mark.parametrize("cores", [1, 2, 3, 8, 64])
@pytest.mark.parametrize("env_step_us", [1, 300, 100_000])
def test_neither_processes_nor_threads_exceed_the_cores(cores: int, env_step_us: float) -> None:
    learners = [learner(20.0 / threads, threads=threads) for threads in (1, 2, 4, 8, 64)]

    for each in expected(machine(cores, env_step_us, learners)):
        assert 1 <= each.choice.num_servers <= cores
        assert 1 <= each.choice.learner_threads <= cores


@pytest.mark.parametrize("most", [1, 5, 32, 1000])
def test_every_process_has_the_same_number_of_whole_environments_and_all_stay_within_the_bound(most: int) -> None:
    for each in expected(machine(8, 100, [learner(5.0)], unit=2), most):
        assert each.choice.num_actors % (2 * each.choice.num_servers) == 0
        assert each.choice.num_actors <= max(2, most)


def test_the_bound_of_environments_follows_the_batch_and_what_was_asked_for() -> None:
    assert most_actors(batch_size=16, num_actors=8) == 32
    assert most_actors(batch_size=4, num_actors=32) == 32


def test_threads_that_bring_nothing_are_not_taken() -> None:
    pieces = machine(8, 100, [learner(5.0, threads=threads) for threads in (1, 2, 4)])

    assert chosen(pieces).choice.learner_threads == 1


def test_threads_are_taken_where_the_update_is_what_saturates() -> None:
    pieces = machine(32, 20, [learner(80.0 / threads, threads=threads) for threads in (1, 2, 4)])

    assert chosen(pieces).choice.learner_threads == 4
    assert chosen(pieces).saturates == "update"


@pytest.mark.parametrize(
    ("learners", "precision", "device"),
    [
        ([learner(20.0), learner(10.0, precision="bf16")], "bf16", "cpu"),
        ([learner(20.0), learner(30.0, precision="bf16")], "fp32", "cpu"),
        ([learner(20.0), learner(20.0, precision="bf16")], "fp32", "cpu"),
        ([learner(20.0), learner(1.0, device="cuda")], "fp32", "cuda"),
    ],
)
def test_precision_and_device_are_those_that_make_it_faster(
    learners: Sequence[LearnerCost], precision: str, device: str
) -> None:
    choice = chosen(machine(16, 20, list(learners))).choice

    assert (choice.precision, choice.device) == (precision, device)


@pytest.mark.parametrize(
    ("pieces", "stage"),
    [
        (machine(64, 100_000, [learner(1.0)]), "environments"),
        (machine(64, 1, [learner(500.0)]), "update"),
        (machine(64, 1, [learner(0.01, inference_us=2000.0)]), "inference"),
        (machine(1, 400, [learner(5.0)]), "CPU"),
    ],
)
def test_the_stage_that_saturates_first_is_named(pieces: Pieces, stage: str) -> None:
    best = chosen(pieces)

    assert best.saturates == stage
    assert best.steps_per_s == min(best.paces.values()) == pytest.approx(best.paces[stage], rel=0.05)


def test_of_settings_that_are_as_fast_the_smallest_is_chosen() -> None:
    pieces = machine(64, 1, [learner(500.0)])
    best = chosen(pieces)

    assert best.choice.num_servers == 1
    assert all(
        each.choice.num_actors >= best.choice.num_actors
        for each in expected(pieces)
        if each.choice.num_servers == 1 and each.steps_per_s >= best.steps_per_s
    )


def test_an_inference_batch_has_one_streams_rows_at_least_and_all_streams_at_most() -> None:
    for each in expected(machine(8, 50, [learner(5.0)])):
        choice = each.choice
        assert choice.num_actors / choice.num_servers <= each.inference_rows <= choice.num_actors


def test_one_choice_is_left_of_every_number_of_processes_the_fastest_first() -> None:
    best = best_of_each_size(expected(machine(4, 400, [learner(5.0), learner(4.0, threads=2)])))

    assert sorted((each.choice.learner_threads, each.choice.num_servers) for each in best) == [
        (threads, servers) for threads in (1, 2) for servers in (1, 2, 3, 4)
    ]
    speeds = [each.steps_per_s for each in best]
    assert speeds == sorted(speeds, reverse=True)


def test_costs_between_the_measured_sizes_lie_between_them() -> None:
    pieces = machine(4, 100, [learner(5.0)])
    few, middle, many = (pieces.env_server(num_envs) for num_envs in (1, 4, 16))

    assert few.process_cpu_s > middle.process_cpu_s > many.process_cpu_s > few.env_step_s
    assert pieces.env_server(1) == env_servers(100)[0]
    costs = learner(5.0)
    walls = [costs.inference_of(rows).wall_s for rows in (1, 4, 8, 20, 32, 128, 256)]
    assert walls == sorted(walls)
    assert costs.inference_of(32) == costs.inference[32]
