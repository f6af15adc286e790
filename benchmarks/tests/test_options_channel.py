"""The cost of options of episodes is measured with and without them."""

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import frames, native_server, recorded_env
from benchmarks.cell import Cell
from benchmarks.options_channel import per_episode, ratio
from benchmarks.step_cost import StepCost, step_cost

COST = StepCost(client_us=2.0, server_us=3.0, steps_per_s=100.0, bytes_per_step=1.0)


def test_ratios_are_of_the_two_measurements_of_a_round() -> None:
    pairs = [(COST, replace(COST, server_us=server_us)) for server_us in (3.3, 2.7, 3.6)]

    found = ratio(pairs, "server_us")

    assert (found.median, found.lowest, found.highest) == pytest.approx((1.1, 0.9, 1.2))


def test_the_cost_of_an_episode_is_that_of_its_steps() -> None:
    pairs = [(COST, replace(COST, server_us=3.5, client_us=2.1))]

    assert per_episode(pairs, "server_us", episode_steps=200) == pytest.approx(100.0)
    assert per_episode(pairs, "client_us", episode_steps=200) == pytest.approx(20.0)


@pytest.mark.parametrize("with_options", [False, True])
def test_env_servers_with_short_episodes_play(with_options: bool, tmp_path: Path) -> None:
    frames.record(tmp_path / "frames.npy", num_envs=2)
    cell = Cell(streams=1, num_envs=2, unroll_length=2, batch_size=1, episode_steps=5, with_options=with_options)

    cost = step_cost(native_server.serve, recorded_env.run, cell, 0.2, 0.1, tmp_path / "frames.npy")

    assert cost.steps_per_s > 0
