"""The comparison of learning: curves of runs, runs that are not repeated, and statistics over seeds."""

import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from benchmarks.learning import __main__ as command
from benchmarks.learning import systems
from benchmarks.learning.programs import pqn, random_policy
from benchmarks.learning.runs import FailedError, Point, Trial, points, read, write
from benchmarks.learning.summary import interquartile_mean, interval, mean_of_part, summarise
from benchmarks.learning.systems import RUN, System
from benchmarks.learning.tasks import ATARI_5, ATARI_57, BY_NAME, TASKS, Task, named
from kubebeast_envserver.envs.atari_choice import find_atari
from kubebeast_runs.log_table import read_table

PROGRAM = """
import sys
from pathlib import Path
folder, seed, steps = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
folder.mkdir(parents=True, exist_ok=True)
with open(folder / "started", "a") as file:
    file.write("x")
with open(folder / "logs.csv", "w") as file:
    file.write("# step,elapsed_s,episode_returns\\n")
    for tenth in range(1, 11):
        file.write(f'{tenth * steps // 10},{tenth * 6},"({tenth * seed}, {tenth * seed})"\\n')
sys.exit(int(seed == 9))
"""


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> System:
    """A system whose return in each tenth of a run is its number times the seed; seed 9 fails."""

    def words(python: Path, task: Task, seed: int, steps: int, folder: Path) -> list[str]:
        return [sys.executable, "-c", PROGRAM, str(folder / RUN), str(seed), str(steps)]

    system = System(name="scripted", command=words, resumes=True)
    monkeypatch.setitem(systems.BY_NAME, "scripted", system)
    return system


def test_a_curve_has_the_episodes_of_equal_parts_of_the_run(tmp_path: Path) -> None:
    (tmp_path / "logs.csv").write_text(
        '# step,elapsed_s,episode_returns\n10,30,"(1.0, 3.0)"\n15,60,"(5.0,)"\n40,120,"()"\n1000,600,"(7.0,)"\n'
    )

    curve = points(read_table(tmp_path / "logs.csv"), steps=1000, cpu_s=1200.0)

    assert [(p.step, p.episodes, p.minutes, p.cpu_minutes) for p in curve] == [
        (20, 3, 1.0, 2.0),
        (40, 0, 2.0, 4.0),
        (1000, 1, 10.0, 20.0),
    ]
    assert curve[0].mean_return == 3.0 and math.isnan(curve[1].mean_return)
    write(curve, tmp_path / "task" / "curve.csv")
    assert str(read(tmp_path / "task" / "curve.csv")) == str(curve)


def test_runs_are_not_repeated_and_failures_stop_nothing(
    scripted: System, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--tasks", "Acrobot", "--systems", "scripted", "--steps", "1000"]
    words += ["--results", str(tmp_path / "results"), "--work", str(tmp_path / "work"), "--alone"]

    command.main([*words, "--seeds", "9", "1"])
    command.main([*words, "--seeds", "1", "2"])
    command.main([*words, "--seeds", "1", "--steps", "500"])

    output = capsys.readouterr().out
    assert "Acrobot, scripted, seed 9: failed" in output and output.count("seed 1: last fifth 9.5") == 2
    folder = tmp_path / "results" / "1000-steps-alone"
    assert [mean_of_part(read(folder / "Acrobot" / f"scripted-seed{seed}.csv"), 0.8, 1.0) for seed in (1, 2)] == [
        9.5,
        19,
    ]
    assert not (folder / "Acrobot" / "scripted-seed9.csv").exists()
    pictures = tmp_path / "results" / "Acrobot-1000-steps-alone"
    assert all((pictures / f"{x}.png").stat().st_size for x in ("step", "minutes", "cpu_minutes"))
    assert (tmp_path / "work" / folder.name / "Acrobot" / "scripted-seed1" / RUN / "started").read_text() == "x"
    assert read(tmp_path / "results" / "500-steps-alone" / "Acrobot" / "scripted-seed1.csv")[-1].step == 500


def test_a_failure_has_the_last_lines_of_the_system(scripted: System, tmp_path: Path) -> None:
    broken = System(name="broken", command=lambda *_: [sys.executable, "-c", "raise SystemExit('no room')"])
    with pytest.raises(FailedError, match="no room"):
        Trial(BY_NAME["Taxi"], broken, 1).run(Path(sys.executable), tmp_path, None)


def test_means_are_over_episodes_and_errors_over_seeds() -> None:
    curves = [
        [Point(50, 1.0, 2.0, 1, 0.0), Point(90, 2.0, 4.0, 3, value), Point(100, 3.0, 6.0, 1, 0.0)]
        for value in (8.0, 4.0)
    ]

    row = summarise("task", "system", curves)

    assert (row.last_fifth, row.standard_error) == pytest.approx((4.5, 1.5))
    assert (row.minutes, row.cpu_minutes, row.seeds) == (3.0, 6.0, 2)
    assert math.isnan(row.first_fifth)


def test_an_interquartile_mean_leaves_out_a_quarter_at_each_end() -> None:
    assert interquartile_mean([100.0, 1.0, 2.0, -50.0]) == 1.5
    assert interquartile_mean([0.0, 1.0, 2.0, 3.0, 4.0, 5.0]) == pytest.approx((0.5 * 1 + 2 + 3 + 0.5 * 4) / 3)
    assert interquartile_mean([7.0]) == 7.0


def test_an_interval_holds_the_interquartile_mean() -> None:
    scores = {"a": [1.0, 1.2, 0.9], "b": [2.0, 2.5, 1.5]}

    low, high = interval(scores)

    assert low < interquartile_mean([*scores["a"], *scores["b"]]) < high
    assert interval({"a": [1.0, 1.0]}) == (1.0, 1.0)


def test_every_environment_is_known_to_its_library() -> None:
    assert len(TASKS) == 14 and {"MinAtar-Seaquest", "DoorKey", "Blackjack"} <= BY_NAME.keys()
    atari = [find_atari(task.env) for suite in (ATARI_5, ATARI_57) for task in suite]
    presets = [game.preset for game in atari if game is not None]
    assert presets == ["atari-v5"] * 5 + ["atari-v4"] * 57


def test_pqn_returns_mix_the_values_of_the_next_steps_within_an_episode() -> None:
    rewards, next_values = torch.tensor([[1.0], [2.0], [4.0]]), torch.tensor([[10.0], [20.0], [40.0]])

    returns = pqn.returns_of(rewards, torch.tensor([[0.0], [1.0], [0.0]]), next_values)

    last = 4.0 + pqn.DISCOUNTING * 40.0
    first = 1.0 + pqn.DISCOUNTING * (pqn.LAMBDA * 2.0 + (1 - pqn.LAMBDA) * 10.0)
    assert returns.flatten().tolist() == pytest.approx([first, 2.0, last])


@pytest.mark.parametrize("program", [pqn.train, random_policy.play])
def test_programs_log_every_episode(program: Callable[[dict[str, Any]], None], tmp_path: Path) -> None:
    program({"env": "CartPole-v1", "inputs": "as they are", "seed": 1, "steps": 2048, "folder": str(tmp_path)})

    curve = points(read_table(tmp_path / "logs.csv"), steps=2048, cpu_s=1.0)
    assert curve[-1].step == 2048
    steps = sum(point.episodes * point.mean_return for point in curve if point.episodes)
    assert 2048 - 4 * 500 < steps <= 2048


def test_a_run_has_the_steps_of_its_task_or_the_given_ones() -> None:
    assert {task.name: task.steps for task in named(["minatar", "Taxi"])}["MinAtar-Asterix"] == 500_000
    assert BY_NAME["MinAtar-Asterix"].steps == BY_NAME["Taxi"].steps == 300_000
    assert {task.steps for task in named(["mujoco", "Taxi"], 7)} == {7}


def test_suites_and_single_environments_can_be_mixed() -> None:
    assert [task.name for task in named(["Taxi", "atari-5"])] == ["Taxi", *(task.name for task in ATARI_5)]
