"""Reading of logs.csv: rows that a resume repeated, and rows between two updates."""

import math
from pathlib import Path

import pytest

from kubebeast_runs.log_table import LogTable, read_log

NAMES = "# _tick,_time,step,elapsed_s,new_episodes,new_mean_return,new_min_return,new_max_return,info/score\n"


def read(folder: Path, *rows: str, names: str = NAMES) -> LogTable:
    """rows: the fields from `step` on."""
    lines = [f"{tick},{tick}.0,{row}\n" for tick, row in enumerate(rows)]
    (folder / "logs.csv").write_text(names + "".join(lines))
    return read_log(folder)


def test_rows_between_two_updates_keep_their_episodes(tmp_path: Path) -> None:
    rows = ("100,1,2,4.0,3.0,5.0,0.5", "100,2,1,10.0,10.0,10.0,0.7", "100,3,0,,,,", "200,4,0,,,,")
    log = read(tmp_path, *rows)
    assert log.steps.tolist() == [100, 200]
    assert [3600 * hours for hours in log.hours] == pytest.approx([3, 4])
    episodes = log.new_episodes
    assert (episodes.counts[0], episodes.means[0], episodes.lows[0], episodes.highs[0]) == (3, 6.0, 3.0, 10.0)
    assert episodes.counts[1] == 0
    assert math.isnan(episodes.means[1])
    score = log.column("info/score")
    assert score is not None
    assert score[0] == 0.7


def test_rows_between_two_updates_of_torchbeast_keep_their_episodes(tmp_path: Path) -> None:
    names = "# _tick,_time,step,episode_returns\n"
    log = read(tmp_path, '100,"(1.0, 2.0)"', '100,"(6.0,)"', '100,"()"', names=names)
    assert log.new_episodes.counts.tolist() == [3]
    assert log.new_episodes.means.tolist() == [3.0]


def test_episodes_of_undone_steps_do_not_count_if_the_next_process_logs_the_same_step(tmp_path: Path) -> None:
    rows = ("100,10,1,1.0,1.0,1.0,", "200,20,5,9.0,9.0,9.0,", "200,4,2,3.0,3.0,3.0,", "200,5,1,6.0,6.0,6.0,")
    log = read(tmp_path, *rows)
    assert log.steps.tolist() == [100, 200]
    assert log.new_episodes.counts.tolist() == [1, 3]
    assert log.new_episodes.means.tolist() == [1.0, 4.0]
