"""Learning curves are read from every log of a run, and runs that differ only in their seed share a line."""

import csv
import json
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from kubebeast_learner.config import ConfigError
from kubebeast_observe.plot.command import run
from kubebeast_observe.plot.curve import Curve, read_curve
from kubebeast_observe.plot.figure import draw
from kubebeast_observe.plot.group import group_curves, mean_and_std
from kubebeast_observe.settings import PlotConfig

HEADER = "# _tick,_time,step,mean_episode_return\n"


def write_run(folder: Path, log: str, args: dict[str, Any] | None = None) -> Path:
    folder.mkdir(parents=True)
    (folder / "logs.csv").write_text(log, encoding="utf-8")
    if args is not None:
        (folder / "meta.json").write_text(json.dumps({"args": args}), encoding="utf-8")
    return folder


def log_of(*rows: tuple[float, float, float | str]) -> str:
    """Returns a logs.csv of (time, step, mean return) rows."""
    return HEADER + "".join(f"{tick},{time},{step},{value}\n" for tick, (time, step, value) in enumerate(rows))


def curve(name: str, settings: dict[str, Any] | None, returns: Sequence[float] = (1.0, 2.0)) -> Curve:
    steps = np.arange(1.0, len(returns) + 1)
    return Curve(
        name=name,
        settings=settings,
        steps=steps,
        hours=steps / 10,
        returns=np.array(returns),
        num_steps=len(returns),
        num_hours=len(returns) / 10,
        steps_per_second=None,
    )


def labels(*curves: Curve) -> dict[str, int]:
    """Returns the number of runs of every group by label."""
    return {group.label: len(group.curves) for group in group_curves(curves)}


def test_rows_before_the_first_finished_episode_count_as_time_but_not_as_points(tmp_path: Path) -> None:
    read = read_curve(write_run(tmp_path / "run", log_of((0, 100, ""), (36, 200, "nan"), (72, 300, -20.5))))
    assert (read.steps.tolist(), read.returns.tolist()) == ([300], [-20.5])
    assert read.hours.tolist() == pytest.approx([0.02])
    assert read.num_steps == 300
    assert read.steps_per_second == pytest.approx(200 / 72)


def test_columns_are_found_after_the_header_grew(tmp_path: Path) -> None:
    log = "# _tick,_time,step,mean_episode_return\n0,0,10,1\n# _tick,_time,step,extra,mean_episode_return\n1,1,20,7,2\n"
    assert read_curve(write_run(tmp_path / "run", log)).returns.tolist() == [1, 2]


def test_a_log_of_polybeast_is_read(tmp_path: Path) -> None:
    log = '# _tick,_time,step,episode_returns,mean_episode_return\n0,0,640,(),nan\n1,1,1280,"(1.0, 21.0)",11.0\n'
    assert read_curve(write_run(tmp_path / "run", log)).returns.tolist() == [11.0]


def test_the_half_written_row_of_a_running_run_is_left_out(tmp_path: Path) -> None:
    assert read_curve(write_run(tmp_path / "run", log_of((0, 10, 1), (1, 20, 2)) + "2,2,3")).num_steps == 20


def test_a_damaged_row_is_left_out_with_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        read = read_curve(write_run(tmp_path / "run", log_of((0, 10, 1)) + "1,1.5,2" + "2,2,30,3\n" + "3,3,40,4\n"))
    assert read.returns.tolist() == [1, 4]
    assert "1 damaged rows" in caplog.text and "logs.csv" in caplog.text


def test_steps_that_a_killed_run_had_to_repeat_are_drawn_once(tmp_path: Path) -> None:
    rows = [(0, 100, 1.0), (1, 200, 2.0), (2, 300, 3.0), (3, 200, 2.5), (4, 350, 3.5)]
    read = read_curve(write_run(tmp_path / "run", log_of(*rows)))
    assert read.steps.tolist() == [100, 200, 350]
    assert read.returns.tolist() == [1.0, 2.5, 3.5]


def test_a_pause_between_stop_and_resume_is_not_training_time(tmp_path: Path) -> None:
    times = [0, 5, 10, 15, 20, 7200, 7205]
    read = read_curve(write_run(tmp_path / "run", log_of(*((t, i + 1, i) for i, t in enumerate(times)))))
    assert (read.hours * 3600).tolist() == pytest.approx([0, 5, 10, 15, 20, 25, 30])


def timed_log(*rows: tuple[float, float, float]) -> str:
    """Returns a logs.csv of (time of day, time of the process, step) rows."""
    lines = [f"{tick},{time},{elapsed},{step},1.0\n" for tick, (time, elapsed, step) in enumerate(rows)]
    return "# _tick,_time,elapsed_s,step,mean_episode_return\n" + "".join(lines)


def test_the_time_before_the_first_row_counts_with_its_steps(tmp_path: Path) -> None:
    read = read_curve(write_run(tmp_path / "run", timed_log((100, 5, 5000), (105, 10, 10_000))))
    assert (read.hours * 3600).tolist() == pytest.approx([5, 10])
    assert read.num_steps == 10_000 and read.steps_per_second == pytest.approx(1000)


def test_a_short_pause_between_two_processes_is_not_training_time(tmp_path: Path) -> None:
    log = timed_log((100, 5, 100), (105, 10, 200), (140, 5, 300), (145, 10, 400))
    read = read_curve(write_run(tmp_path / "run", log))
    assert (read.hours * 3600).tolist() == pytest.approx([5, 10, 15, 20])
    assert read.steps_per_second == pytest.approx(20)


def test_steps_that_a_killed_run_had_to_repeat_cost_time(tmp_path: Path) -> None:
    log = timed_log((100, 5, 100), (105, 10, 200), (140, 5, 200), (145, 10, 300))
    read = read_curve(write_run(tmp_path / "run", log))
    assert (read.steps.tolist(), (read.hours * 3600).tolist()) == ([100, 200, 300], pytest.approx([5, 15, 20]))


def test_a_clock_that_is_set_back_makes_no_negative_time(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_run(tmp_path / "run", log_of((3600, 10, 1.0), (3605, 20, 2.0), (8, 30, 3.0), (13, 40, 4.0)))
    assert run(PlotConfig(runs=("run",), savedir=str(tmp_path), out=tmp_path / "plot.png")) == 0
    text = capsys.readouterr().out
    assert "0:00:15" in text and "day" not in text


def test_a_byte_that_is_no_text_damages_its_row_only(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = write_run(tmp_path / "run", log_of((0, 10, 1), (1, 20, 2), (2, 30, 3)))
    path = folder / "logs.csv"
    path.write_bytes(path.read_bytes().replace(b",20,", b",2\xff,"))
    with caplog.at_level(logging.WARNING):
        assert read_curve(folder).returns.tolist() == [1, 3]
    assert "1 damaged rows" in caplog.text


def test_several_seeds_have_a_legend_that_names_their_band(tmp_path: Path) -> None:
    group = group_curves([curve("catch-seed1", {"seed": 1}), curve("catch-seed2", {"seed": 2})])
    draw(group, tmp_path / "plot.svg")
    assert "catch: mean of 2 runs, band of ±1 standard deviation" in (tmp_path / "plot.svg").read_text(encoding="utf-8")


def test_runs_that_differ_in_seed_and_place_form_one_group() -> None:
    seeds = [
        curve(
            f"pong-seed{i}", {"env": "Pong", "seed": i, "xpid": f"pong-seed{i}", "savedir": f"/{i}", "address": str(i)}
        )
        for i in range(3)
    ]
    assert labels(*seeds) == {"pong": 3}


def test_groups_are_told_apart_by_the_names_people_chose() -> None:
    runs = [curve(f"{kind}-seed{i}", {"kind": kind, "seed": i}) for kind in ("mono", "distributed") for i in (1, 2)]
    assert labels(*runs) == {"mono": 2, "distributed": 2}


def test_groups_of_automatic_names_are_told_apart_by_the_settings_that_differ() -> None:
    runs = [
        curve(f"kubebeast-20260131-14250{i}", {"learning_rate": rate, "env": "Pong", "seed": i})
        for i, rate in enumerate((0.1, 0.1, 0.2))
    ]
    assert labels(*runs) == {"learning_rate=0.1": 2, "learning_rate=0.2": 1}


def test_runs_without_settings_stay_alone() -> None:
    assert labels(curve("a", None), curve("b", None)) == {"a": 1, "b": 1}


def test_mean_and_spread_cover_only_what_all_runs_cover() -> None:
    xs = [np.array([0.0, 10.0]), np.array([2.0, 8.0])]
    ys = [np.array([0.0, 10.0]), np.array([4.0, 10.0])]
    grid, mean, std = mean_and_std(xs, ys)
    assert (grid[0], grid[-1]) == (2.0, 8.0)
    np.testing.assert_allclose(mean, grid + 1)  # the lines y = x and y = x + 2
    np.testing.assert_allclose(std, 1.0)


def test_runs_that_share_no_span_have_no_mean() -> None:
    grid, mean, std = mean_and_std([np.array([0.0, 1.0]), np.array([2.0, 3.0])], [np.zeros(2), np.ones(2)])
    assert grid.size == mean.size == std.size == 0


@pytest.fixture
def savedir(tmp_path: Path) -> Path:
    """Two seeds of one run, and a run that has not finished an episode."""
    for seed in (1, 2):
        rows = [(3600.0 * i / 100, 10.0 * i, float(i + seed)) for i in range(1, 301)]
        write_run(tmp_path / f"catch-seed{seed}", log_of(*rows), {"env": "Catch", "seed": seed})
    write_run(tmp_path / "young", log_of((0, 10, "")), {"env": "Pong"})
    return tmp_path


def test_the_picture_is_drawn_and_its_numbers_are_printed(savedir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = savedir / "new" / "plot.png"
    names = ("catch-seed1", str(savedir / "catch-seed2"), "young")
    assert run(PlotConfig(runs=names, savedir=str(savedir), out=out, threshold=100, json=True)) == 0
    with Image.open(out) as picture:
        assert picture.width > 1000 and len(picture.convert("RGB").getcolors(1 << 20) or []) > 50
    result = json.loads(capsys.readouterr().out)
    assert [group["label"] for group in result["groups"]] == ["catch", "young"]
    first, second = result["groups"][0]["runs"]
    assert (first["steps"], first["mean_return"], first["steps_to_threshold"]) == (3000, 301, 990)
    assert second["steps_to_threshold"] == 980
    assert first["steps_per_second"] == pytest.approx(10 / 36)
    assert result["groups"][1]["runs"][0]["mean_return"] is None


def test_the_table_shows_every_run_and_the_spread_over_seeds(savedir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = PlotConfig(runs=("catch-seed1", "catch-seed2"), savedir=str(savedir), out=savedir / "a.svg", threshold=100)
    assert run(config) == 0
    text = capsys.readouterr().out
    assert [part for part in ("catch-seed1", "301.50 ± 0.50", "985 ± 5", "2:59:24", "a.svg") if part not in text] == []


def test_a_pattern_stands_for_the_runs_that_match_each_once(
    savedir: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(savedir.parent)  # the shell finds no match there
    (savedir / "catch-latest").symlink_to("catch-seed1")
    (savedir / "catch-notes").mkdir()
    names = ("catch-seed2", "catch-*")
    assert run(PlotConfig(runs=names, savedir=str(savedir), out=savedir / "plot.png", json=True)) == 0
    (group,) = json.loads(capsys.readouterr().out)["groups"]
    assert [each["run"] for each in group["runs"]] == ["catch-seed2", "catch-seed1"]


def test_csv_holds_every_run_thinned_to_200_rows(savedir: Path) -> None:
    run(PlotConfig(runs=("catch-seed1",), savedir=str(savedir), out=savedir / "plot.png", csv=True))
    with open(savedir / "plot.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 200
    assert (rows[0]["step"], rows[-1]["step"], rows[-1]["mean_episode_return"]) == ("10", "3000", "301.0000")


def test_x_max_draws_less_than_was_trained(savedir: Path) -> None:
    run(PlotConfig(runs=("catch-seed1",), savedir=str(savedir), out=savedir / "plot.png", csv=True, x_max=500))
    assert (savedir / "plot.csv").read_text().splitlines()[-1].startswith("catch-seed1,500,")


@pytest.mark.parametrize(
    ("names", "out", "reason"),
    [
        (("gone",), "plot.png", r"runs = 'gone': there is no logs.csv"),
        (("gone-*",), "plot.png", r"runs = 'gone-\*': there is no logs.csv"),
        (("young",), "plot.png", r"runs = young: no episode has finished"),
        (("catch-seed1",), "plot.docx", r"out = .*plot.docx"),
    ],
)
def test_what_cannot_be_drawn_is_named(savedir: Path, names: tuple[str, ...], out: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        run(PlotConfig(runs=names, savedir=str(savedir), out=savedir / out))


def test_a_log_without_rows_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"empty.*has no rows"):
        read_curve(write_run(tmp_path / "empty", HEADER))


def test_a_group_keeps_the_order_of_the_command_line() -> None:
    (group,) = group_curves([curve("b", {"seed": 2}), curve("a", {"seed": 1})])
    assert [one.name for one in group.curves] == ["b", "a"]


def test_bins_average_the_episodes_that_ended_in_them(tmp_path: Path) -> None:
    log = (
        "# _tick,_time,step,mean_episode_return,episode_returns\n"
        '0,0,400,1.0,"(1.0, 3.0)"\n'
        '1,36,900,2.0,"(5.0,)"\n'
        "2,72,1400,2.0,()\n"
        '3,108,2000,3.0,"(7.0, 9.0)"\n'
        '4,144,2100,3.0,"(11.0,)"\n'
    )
    read = read_curve(write_run(tmp_path / "run", log), bin_steps=1000)
    assert (read.steps.tolist(), read.returns.tolist()) == ([1000, 2000], [3.0, 8.0])
    assert read.hours.tolist() == pytest.approx([0.01, 0.03])
    assert read.num_steps == 2100 and read.steps_to(8) == 2000


def test_the_only_bin_is_drawn_before_it_is_complete(tmp_path: Path) -> None:
    log = '# _tick,_time,step,mean_episode_return,episode_returns\n0,0,400,2.0,"(1.0, 3.0)"\n'
    read = read_curve(write_run(tmp_path / "run", log), bin_steps=1000)
    assert (read.steps.tolist(), read.returns.tolist()) == ([1000], [2.0])


def test_bins_weigh_the_summaries_of_rows_by_their_episodes(tmp_path: Path) -> None:
    log = (
        "# _tick,_time,step,mean_episode_return,episode_returns,new_episodes,new_mean_return,new_min_return,"
        "new_max_return\n"
        '0,0,400,1.0,"(3.0,)",300,1.0,0,3\n'
        '1,36,900,2.0,"(5.0,)",100,5.0,5,5\n'
        "2,72,1000,2.0,(),0,,,\n"
    )
    read = read_curve(write_run(tmp_path / "run", log), bin_steps=1000)
    assert (read.steps.tolist(), read.returns.tolist()) == ([1000], [2.0])


def test_bins_need_the_returns_of_single_episodes(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", log_of((0, 100, 1.0)))
    with pytest.raises(ConfigError, match=r"bin_steps = 50: .* has no column episode_returns"):
        read_curve(folder, bin_steps=50)


SCORES = "# _tick,_time,step,mean_return,mode\n0,0,150,3.5,greedy\n1,9,300,4.5,greedy\n"


def test_the_scores_of_checkpoints_are_drawn_at_the_time_of_their_training(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", log_of((0, 100, 1.0), (36, 200, 2.0), (72, 300, 2.5)))
    (folder / "eval.csv").write_text(SCORES, encoding="utf-8")
    read = read_curve(folder, source="eval")
    assert (read.steps.tolist(), read.returns.tolist()) == ([150, 300], [3.5, 4.5])
    assert read.hours.tolist() == pytest.approx([0.005, 0.02])
    assert run(PlotConfig(runs=(str(folder),), returns="eval", out=tmp_path / "eval.png")) == 0
    with Image.open(tmp_path / "eval.png") as picture:
        assert picture.width > 0


def test_a_run_that_nobody_followed_has_no_scores_to_draw(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", log_of((0, 100, 1.0)))
    with pytest.raises(ConfigError, match=r"returns = 'eval': .*eval.csv has no score; kubebeast eval --follow"):
        read_curve(folder, source="eval")
    with pytest.raises(ConfigError, match=r"bin_steps = 50: is for the returns of training"):
        PlotConfig(runs=("run",), returns="eval", bin_steps=50)
