"""Plots and reports tell the scores of several evaluators apart."""

from pathlib import Path

import pytest

from kubebeast_common.settings import ConfigError
from kubebeast_observe.plot.command import run
from kubebeast_observe.plot.curve import read_curve
from kubebeast_observe.report.figures import return_figure
from kubebeast_observe.report.page import render
from kubebeast_observe.report.run_folder import read_run
from kubebeast_observe.settings import PlotConfig

LOG = "# _tick,_time,step,mean_episode_return\n0,0.0,100,1.0\n1,72.0,300,2.5\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "logs.csv").write_text(LOG)
    return folder


def write_scores(folder: Path, name: str, *returns: float) -> None:
    rows = "".join(f"{100 * number},{score}\n" for number, score in enumerate(returns, start=1))
    (folder / f"{name}.csv").write_text(f"# step,mean_return\n{rows}")


def test_each_has_a_line_of_its_name_in_the_report(folder: Path) -> None:
    for number, name in enumerate(("eval", "eval-a", "eval-b", "eval-c", "eval-d")):
        write_scores(folder, name, number, number + 0.5)
    found = read_run(folder)
    drawn = return_figure(found.log, found.scores)
    assert drawn is not None and drawn.legend == [
        ("training", "2.5"),
        ("evaluation", "0.5"),
        ("evaluation a", "1.5"),
        ("evaluation b", "2.5"),
    ]
    assert drawn.hint.endswith("2 more evaluators have scores.") and "evaluation b" in render(found)


def test_the_one_that_is_named_is_plotted(folder: Path, tmp_path: Path) -> None:
    write_scores(folder, "eval-greedy", 3.5, 4.5)
    assert read_curve(folder, source="eval").returns.tolist() == [3.5, 4.5], "the only one"
    write_scores(folder, "eval-sampling", 2.5)
    assert read_curve(folder, source="eval", evaluator="sampling").returns.tolist() == [2.5]
    config = PlotConfig(runs=(str(folder),), returns="eval", evaluator="greedy", out=tmp_path / "eval.png")
    assert run(config) == 0 and config.out.stat().st_size > 0


def test_an_evaluator_that_is_not_there_or_not_named_is_an_error(folder: Path) -> None:
    write_scores(folder, "eval-greedy", 3.5)
    write_scores(folder, "eval-sampling", 2.5)
    with pytest.raises(ConfigError, match=r"evaluator = '': .*run: it is unclear which .*: greedy, sampling"):
        read_curve(folder, source="eval")
    with pytest.raises(ConfigError, match=r"evaluator = 'other': .*run: the run has no scores of the evaluator"):
        read_curve(folder, source="eval", evaluator="other")
    with pytest.raises(ConfigError, match="evaluator = 'greedy': names scores, which returns = 'eval' draws"):
        PlotConfig(runs=("run",), evaluator="greedy")
