"""The score of a run at a point is the mean over the window of steps before it."""

import math
from pathlib import Path

import pytest

from kubebeast_sweep.plan import read_plan
from kubebeast_sweep.scores import Curve, cut_episodes, last_score, point_of, score_at

PLAN = "settings: {{env: X, total_steps: 1000}}\nparameters: {{rate: [1, 2]}}\nnum_trials: 2\nscore: {score}\n"
ROWS = "# step,elapsed_s,new_episodes,new_mean_return,new_min_return,new_max_return,info/success\n" + "".join(
    f"{step},{step / 100},{count},{value},{value},{value},{success}\n"
    for step, count, value, success in (
        (100, 1, 1.0, ""),
        (500, 0, "", 0.5),
        (700, 3, 10.0, 0.75),
        (800, 1, 20.0, 1.0),
        (1000, 2, 50.0, 1.0),
    )
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "logs.csv").write_text(ROWS)
    return tmp_path


@pytest.mark.parametrize(
    ("score", "point", "expected"),
    [
        ("return", 16, 12.5),
        ("return", 20, 50.0),
        ("return", 10, 1.0),
        ("return", 1, math.nan),
        ("info/success", 16, 0.875),
    ],
)
def test_episodes_count_equally_and_rows_of_a_column_too(folder: Path, score: str, point: int, expected: float) -> None:
    file = folder / "sweep.yaml"
    file.write_text(PLAN.format(score=score))
    plan = read_plan(file)

    assert score_at(Curve(folder).newest(), plan, point) == pytest.approx(expected, nan_ok=True)


def test_a_run_that_ends_early_has_the_score_of_its_end(folder: Path) -> None:
    file = folder / "sweep.yaml"
    file.write_text(PLAN.format(score="return"))
    plan = read_plan(file)
    (folder / "logs.csv").write_text("".join(ROWS.splitlines(keepends=True)[:-1]))

    log = Curve(folder).newest()
    assert point_of(log, plan) == 16
    assert last_score(log, plan) == 12.5


def test_a_run_without_a_log_has_reached_no_point(tmp_path: Path) -> None:
    file = tmp_path / "sweep.yaml"
    file.write_text(PLAN.format(score="return"))
    plan = read_plan(file)

    assert point_of(Curve(tmp_path / "missing").newest(), plan) == 0
    assert math.isnan(last_score(Curve(tmp_path / "missing").newest(), plan))


@pytest.mark.parametrize(("interval", "expected"), [(9600, False), (9599, True), (1000, True)])
def test_an_interval_that_cuts_off_episodes_is_noted(tmp_path: Path, interval: int, expected: bool) -> None:
    (tmp_path / "logs.csv").write_text("# step,elapsed_s,envs,mean_episode_step\n100,1,16,\n200,2,16,200.0\n300,3,,\n")
    warning = cut_episodes(Curve(tmp_path).newest(), interval)

    assert (f"population.interval = {interval}: each of 16 environments" in warning) == expected


def test_a_log_without_episodes_warns_of_nothing(folder: Path) -> None:
    assert cut_episodes(Curve(folder).newest(), 1) == ""
