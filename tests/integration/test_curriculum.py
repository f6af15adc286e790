"""Levels that a curriculum chooses reach the environments of every kind of actors, and episodes come back with them."""

from pathlib import Path

import pytest

from harness.processes.training_process import rows, run, training_command
from kubebeast_runs.log_table import read_log
from tests.integration.leveled_env import EPISODE_STEPS

KINDS = ("train", "mono")
LEVELED = "--env=tests.integration.leveled_env:Leveled-v0"
OWN = "tests.integration.own_curriculum:Stairs"
MAZES = "tests.integration.own_curriculum:Mazes"


@pytest.mark.parametrize("name", KINDS)
def test_a_curriculum_knows_the_level_of_each_episode(name: str, tmp_path: Path) -> None:
    levels = ("--curriculum=uniform", '--levels={"level": [0, 1, 2, 3]}', "--log-info=level")

    result = run(training_command(name, tmp_path, LEVELED, "--total-steps=3000", *levels))

    assert result.returncode == 0, result.stdout + result.stderr
    table = read_log(tmp_path / "run")
    assert table.newest("curriculum/played_share") == 1.0
    assert table.newest("curriculum/mean_return") == 1.5, "each level has its own return in each episode"
    assert table.newest("info/level") == pytest.approx(1.5, abs=0.5)


@pytest.mark.parametrize("name", KINDS)
def test_a_curriculum_of_ones_own_chooses_by_episodes_and_continues(name: str, tmp_path: Path) -> None:
    own = (LEVELED, f"--curriculum={OWN}", "--log-info=level")

    first = run(training_command(name, tmp_path, *own, "--total-steps=2000"))
    second = run(training_command(name, tmp_path, *own, "--total-steps=3000"))

    assert (first.returncode, second.returncode) == (0, 0), first.stderr + second.stderr
    heights = [float(row["curriculum/height"]) for row in rows(tmp_path / "run")]
    assert heights == sorted(heights), "the second process continues at the height of the first"
    assert heights[-1] > 1


@pytest.mark.parametrize("name", KINDS)
def test_more_levels_and_episodes_than_a_pipe_holds_keep_nobody_waiting(name: str, tmp_path: Path) -> None:
    many = ("--num-actors=16", "--num-actor-processes=1", "--unroll-length=60") if name == "mono" else ()

    result = run(training_command(name, tmp_path, LEVELED, f"--curriculum={MAZES}", "--total-steps=8000", *many))

    assert result.returncode == 0, result.stdout + result.stderr
    assert float(rows(tmp_path / "run")[-1]["curriculum/episodes"]) > 8000 / EPISODE_STEPS / 2


@pytest.mark.parametrize("name", KINDS)
def test_an_error_of_a_curriculum_ends_the_run_in_words(name: str, tmp_path: Path) -> None:
    own = (f"--curriculum={OWN}", '--curriculum-options={"top": 1}', "--log-info=level")

    result = run(training_command(name, tmp_path, LEVELED, "--total-steps=1000000", *own))

    assert result.returncode == 1
    reason = f"the run failed: curriculum = '{OWN}': next_level: RuntimeError: there is no level above the top"
    assert reason in result.stdout + result.stderr


@pytest.mark.parametrize("name", KINDS)
def test_environments_that_take_no_options_end_the_run_in_words(name: str, tmp_path: Path) -> None:
    levels = ("--curriculum=uniform", '--levels={"level": [0]}')
    env = "--env=tests.integration.leveled_env:Levelless-v0"

    result = run(training_command(name, tmp_path, env, "--total-steps=1000", *levels))

    assert result.returncode != 0
    logs = result.stdout + result.stderr + "".join(path.read_text() for path in (tmp_path / "run").glob("*.log"))
    assert "Levelless environments take no options at a reset" in logs
