"""The cost of options of episodes is measured with and without them."""

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import frames, native_server, recorded_env
from benchmarks.cell import Cell
from benchmarks.options_channel import Settings, alternate, per_episode, ratio
from benchmarks.step_cost import Counts, Load, step_cost, under_load

COUNTS = Counts(steps=1000, time_s=1.0, client_cpu_s=0.002, server_cpu_s=0.003, bytes=1000)


def test_ratios_are_of_the_two_measurements_of_a_round() -> None:
    pairs = [(replace(COUNTS, steps=steps), replace(COUNTS, steps=2 * steps)) for steps in (100, 300, 200)]

    found = ratio(pairs)

    assert (found.median, found.first_quartile, found.third_quartile, found.standard_error) == (2.0, 2.0, 2.0, 0.0)


def test_the_cost_of_an_episode_is_that_of_its_steps() -> None:
    pairs = [(COUNTS, replace(COUNTS, server_cpu_s=0.0035, client_cpu_s=0.0021))] * 2

    assert per_episode(pairs, "server_us", episode_steps=200) == pytest.approx(100.0)
    assert per_episode(pairs, "client_us", episode_steps=200) == pytest.approx(20.0)


def test_one_of_two_loads_is_under_way(tmp_path: Path) -> None:
    recording = tmp_path / "frames.npy"
    frames.record(recording, num_envs=2)
    cell = Cell(streams=1, num_envs=2, unroll_length=2, batch_size=1, episode_steps=5)
    with (
        under_load(native_server.serve, recorded_env.run, cell, recording) as first,
        under_load(native_server.serve, recorded_env.run, cell, recording) as second,
    ):
        pairs = alternate(first, second, Settings(seconds=0.1, settle_seconds=0.1, rounds=2))

        with pytest.raises(RuntimeError, match="the server stands still"):
            count_until_it_stands_still(first)

    assert all(counts.steps > 0 for pair in pairs for counts in pair)


def count_until_it_stands_still(load: Load) -> None:
    """Steps that suspended clients had sent are still delivered."""
    while True:
        load.count(0.1)


def end_at_once(cell: Cell, streams: range, address: str, recording: Path) -> None:
    """Is a client that ends."""


def test_a_client_that_ends_is_an_error(tmp_path: Path) -> None:
    cell = Cell(streams=1, num_envs=2, unroll_length=2, batch_size=1)

    with (
        pytest.raises(RuntimeError, match=r"a client of Cell.* ended"),
        under_load(native_server.serve, end_at_once, cell, tmp_path / "none"),
    ):
        pass


@pytest.mark.parametrize("with_options", [False, True])
def test_env_servers_with_short_episodes_play(with_options: bool, tmp_path: Path) -> None:
    frames.record(tmp_path / "frames.npy", num_envs=2)
    cell = Cell(streams=1, num_envs=2, unroll_length=2, batch_size=1, episode_steps=5, with_options=with_options)

    cost = step_cost(native_server.serve, recorded_env.run, cell, 0.2, 0.1, tmp_path / "frames.npy")

    assert cost.steps_per_s > 0
