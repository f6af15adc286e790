"""The maze of the examples keeps gymnasium's contract and its own."""

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from numpy.typing import NDArray

from kubebeast_common.cli.main import main

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
MOVES = np.array([(-1, 0), (0, 1), (1, 0), (0, -1)])

Env = gymnasium.Env[NDArray[np.float32], np.int64]


@pytest.fixture
def maze(monkeypatch: pytest.MonkeyPatch) -> Env:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    return gymnasium.make("maze_env:Maze-v0", render_mode="rgb_array")


def test_it_is_an_environment_as_gymnasium_wants_it(maze: Env) -> None:
    check_env(maze.unwrapped)


def test_a_seed_chooses_the_maze_and_the_next_episode_has_another(maze: Env) -> None:
    first, again = (maze.reset(seed=7)[0] for _ in range(2))
    others = [maze.reset()[0] for _ in range(5)]

    assert (first == again).all()
    assert any((first != other).any() for other in others)


def test_the_shortest_way_ends_at_the_goal_with_its_reward(maze: Env) -> None:
    (walls, agent, goal), _ = maze.reset(seed=7)
    distance = distances(walls, goal)
    place = np.argwhere(agent)[0]
    rewards = []
    while distance[tuple(place)] > 0:
        action = np.argmin([distance[tuple(place + move)] for move in MOVES])
        (_, agent, _), reward, terminated, truncated, _ = maze.step(action)
        place = np.argwhere(agent)[0]
        rewards.append(reward)
        assert (terminated, truncated) == (distance[tuple(place)] == 0, False)

    assert rewards == [-0.01] * (len(rewards) - 1) + [1.0]


def test_a_wall_holds_the_agent_and_the_time_limit_ends_the_episode(maze: Env) -> None:
    before, _ = maze.reset(seed=7)
    steps = [maze.step(np.int64(0)) for _ in range(100)]  # up, from the top row

    assert all((observation == before).all() for observation, *_ in steps)
    assert [step[1:4] for step in steps] == [(-0.01, False, False)] * 99 + [(-0.01, False, True)]


def test_a_grid_that_cannot_be_a_maze_is_refused(maze: Env) -> None:
    for size in (3, 6):
        with pytest.raises(ValueError, match=f"size = {size}: must be odd and at least 5"):
            gymnasium.make("maze_env:Maze-v0", size=size)


def distances(walls: NDArray[np.float32], goal: NDArray[np.float32]) -> NDArray[Any]:
    """Returns float [H, W]: the fewest moves from each cell to the goal; infinite for walls."""
    distance = np.where(goal == 1, 0.0, np.inf)
    for _ in range(walls.size):
        nearest = np.min([np.roll(distance, shift, axis) for shift in (-1, 1) for axis in (0, 1)], axis=0)
        distance = np.where(walls == 1, np.inf, np.minimum(distance, nearest + 1))
    return distance


@pytest.mark.usefixtures("maze")
def test_an_env_server_finds_nothing_wrong_with_it() -> None:
    assert main(["check-env", "maze_env:Maze-v0", "--steps", "200"]) == 0
