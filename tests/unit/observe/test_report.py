"""`kubebeast report` makes one page from any files of a run."""

import json
import math
import re
from array import array
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kubebeast_common.cli import main as cli
from kubebeast_common.cli.settings import as_settings
from kubebeast_learner.config import ConfigError, TrainConfig
from kubebeast_learner.machine.versions import describe_hardware, describe_versions
from kubebeast_observe.numbers import short_text
from kubebeast_observe.report import command
from kubebeast_observe.report.chart import Line, make_chart
from kubebeast_observe.report.figures import figures
from kubebeast_observe.report.out_log import MAX_LINES, MAX_MESSAGES, read_out_log
from kubebeast_observe.report.page import render, status
from kubebeast_observe.report.run_folder import read_run
from kubebeast_observe.report.series import MAX_POINTS, band_of, smoothed, thinned
from kubebeast_observe.report.settings import Setting, compare
from kubebeast_observe.settings import ReportConfig
from kubebeast_runs.folder import find_run
from kubebeast_runs.log_table import NewEpisodes, read_log

HEADER = "# _tick,_time,step,mean_episode_return,pg_loss,sps,episode_returns\n"
PREFIX = "7 kubebeast_learner.training.loop 2026-01-01 10:00:00,000] "
HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>"


class Reader(HTMLParser):
    """Collects tags, attributes and text as a browser does."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attributes

    def handle_data(self, data: str) -> None:
        self.text += data


def write_run(folder: Path, *rows: tuple[float, float, str], meta: dict[str, Any] | None = None, out: str = "") -> Path:
    """Writes a run with one row every ten seconds. rows: step, return, returns of episodes."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = [
        f'{tick},{10.0 * tick},{step},{mean},0.5,100,"{returns}"\n' for tick, (step, mean, returns) in enumerate(rows)
    ]
    (folder / "logs.csv").write_text(HEADER + "".join(lines), encoding="utf-8")
    if meta is not None:
        (folder / "meta.json").write_text(json.dumps(meta), encoding="utf-8")
    (folder / "out.log").write_text(out, encoding="utf-8")
    return folder


def test_each_of_several_tasks_has_a_curve_and_its_share(tmp_path: Path) -> None:
    names = (
        "# _tick,_time,step,mean_episode_return,step/Pong,step/Qbert,mean_episode_return/Pong,mean_episode_return/Qbert"
    )
    rows = [f"{tick},{tick},{300 * tick},5,{200 * tick},{100 * tick},{tick},{10 * tick}" for tick in range(1, 4)]
    (tmp_path / "logs.csv").write_text("\n".join([names, *rows, ""]), encoding="utf-8")
    page = page_of(tmp_path)
    assert "Return of Pong" in page.text and "Return of Qbert" in page.text
    assert "66.7% of all env-steps were its" in page.text and "33.3% of all env-steps were its" in page.text


def test_a_part_of_a_loss_of_ones_own_has_a_curve(tmp_path: Path) -> None:
    rows = [f"{tick},{tick},{300 * tick},5,{0.5 * tick}" for tick in range(1, 4)]
    names = "# _tick,_time,step,mean_episode_return,loss/logit_penalty"
    (tmp_path / "logs.csv").write_text("\n".join([names, *rows, ""]), encoding="utf-8")
    page = page_of(tmp_path)
    assert "Parts of the loss" in page.text and "logit_penalty" in page.text


def test_a_number_of_the_environment_or_curriculum_has_a_curve_even_at_zero(tmp_path: Path) -> None:
    rows = [f"{tick},{tick},{300 * tick},5,0.0,{0.5 * tick},None,{tick}" for tick in range(1, 4)]
    names = "# _tick,_time,step,mean_episode_return,info/success,info/found/wood,info/missing,curriculum/mean_return"
    (tmp_path / "logs.csv").write_text("\n".join([names, *rows, ""]), encoding="utf-8")
    found = dict(figures(read_log(tmp_path)))
    shown = {each.title: each.legend for group in ("Environment", "Curriculum") for each in found[group]}
    assert shown == {"success": [("mean", "0")], "found/wood": [("mean", "1.5")], "mean return": [("value", "3")]}


def test_each_of_several_learners_has_a_line(tmp_path: Path) -> None:
    names = "sps/rank0,sps/rank1,streams/rank0,streams/rank1,empty_shares/rank0,empty_shares/rank1"
    rows = [f"{tick},{tick},{300 * tick},30,10,20,2,3,0,{tick}" for tick in range(1, 4)]
    (tmp_path / "logs.csv").write_text("\n".join([f"# _tick,_time,step,sps,{names}", *rows, ""]), encoding="utf-8")
    groups = dict(figures(read_log(tmp_path)))
    shown = {figure.title: figure.legend for figure in groups["Learners"]}
    assert shown["Throughput of each learner, steps/s"] == [("rank 0", "10"), ("rank 1", "20")]
    assert shown["Streams of each learner"] == [("rank 0", "2"), ("rank 1", "3")]
    assert shown["Empty shares"] == [("rank 0", "0"), ("rank 1", "3")]
    assert "Empty shares" in page_of(tmp_path).text


def page_of(folder: Path) -> Reader:
    return Reader(render(read_run(folder)))


def whole_run(folder: Path, **changes: Any) -> Path:
    meta: dict[str, Any] = {
        "args": as_settings(TrainConfig()) | {"env": "Catch-v0", "total_steps": 3000, "batch_size": 8},
        "date_start": "2026-01-01 10:00:00.123",
        "date_end": "2026-01-01 10:01:00.123",
        "git": {"commit": "0123456789abcdef", "branch": "main", "is_dirty": True},
        "hardware": {
            "cpu": "Fast",
            "cores": 4,
            "memory_bytes": 8 << 30,
            "gpus": [{"name": "G1", "memory_bytes": 1 << 30}],
        },
        "versions": {"kubebeast": "0.1.0"},
        "slurm": {},
        "successful": True,
    }
    rows = [(100.0 * n, -1 + n / 15, f"({-1 + n / 15}, 1.0)") for n in range(1, 31)]
    out = f"[INFO:{PREFIX}training on cpu: Catch-v0, observation float32 [10, 5]\n[WARNING:{PREFIX}it is late\n"
    return write_run(folder, *rows, meta=meta | changes, out=out)


def test_a_page_tells_everything_that_the_run_has_recorded(tmp_path: Path) -> None:
    page = page_of(whole_run(tmp_path / "first-try"))
    for text in (
        *("first-try", "finished", "Catch-v0", "started 2026-01-01 10:00", "it is late", "0 errors, 1 warnings"),
        *("Fast, 4 cores", "8 GiB", "G1, 1 GiB", "0123456789ab (main) with uncommitted changes", "float32 [10, 5]"),
        *("Episode return", "Losses", "Throughput, steps/s"),
    ):
        assert text in page.text, text


def test_the_scores_of_checkpoints_are_drawn_beside_the_training_curve(tmp_path: Path) -> None:
    folder = whole_run(tmp_path / "run")
    assert "evaluation" not in page_of(folder).text
    scores = "# _tick,_time,step,mean_return,mode\n0,0,1000,0.25,greedy\n1,9,3000,0.75,greedy\n"
    (folder / "eval.csv").write_text(scores, encoding="utf-8")
    assert re.search(r"training\s*1\s*evaluation\s*0.75", page_of(folder).text)
    (folder / "logs.csv").unlink()
    assert re.search(r"Episode return\s*0.75", page_of(folder).text)


def test_a_page_needs_nothing_but_itself(tmp_path: Path) -> None:
    page = page_of(whole_run(tmp_path / "run"))
    assert {"script", "link", "iframe", "img", "object"}.isdisjoint(page.tags)
    assert [name for name, _ in page.attributes if name in ("src", "href", "style") or name.startswith("on")] == []
    (policy,) = (value for name, value in page.attributes if name == "content" and "default-src" in (value or ""))
    assert policy is not None and policy.startswith("default-src 'none'")


def test_what_a_run_contains_is_text_and_never_markup(tmp_path: Path) -> None:
    meta = {
        "args": as_settings(TrainConfig()) | {"env": HOSTILE, HOSTILE: HOSTILE},
        "git": {"commit": HOSTILE, "branch": HOSTILE},
        "versions": {HOSTILE: HOSTILE},
        "hardware": {"cpu": HOSTILE, "gpus": [{"name": HOSTILE}]},
        "date_start": HOSTILE,
    }
    out = f"[ERROR:{PREFIX}{HOSTILE}\n{HOSTILE}\x1b[31m\x00\n"
    folder = write_run(tmp_path / "<b>run", (100, 1.0, "()"), meta=meta, out=out)
    page = page_of(folder)
    assert {"script", "img", "b>run"}.isdisjoint(page.tags) and "onerror" not in dict(page.attributes)
    assert page.text.count(HOSTILE) >= 8 and "\x1b" not in page.text and "\x00" not in page.text


def test_a_run_without_an_episode_has_a_page(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", (100, float("nan"), "()"), meta={"args": {}, "date_end": None})
    page = page_of(folder)
    assert "No episode has finished." in page.text and "running, or killed" in page.text and "nan" not in page.text


def test_a_run_that_only_began_has_a_page(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "meta.json").write_text("{", encoding="utf-8")
    page = page_of(find_run("run", "run", str(tmp_path), ("meta.json", "logs.csv")))
    assert "end not recorded" in page.text and "None." in page.text


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({}, "finished"),
        ({"args": {"total_steps": 1_000_000}}, "stopped early"),
        ({"successful": False}, "failed"),
        ({"successful": False, "date_end": None}, "running, or killed"),
    ],
)
def test_the_end_of_a_run_is_told(tmp_path: Path, changes: dict[str, Any], word: str) -> None:
    assert status(read_run(whole_run(tmp_path / "run", **changes)))[1] == word


def test_steps_that_a_resume_repeated_are_told_once(tmp_path: Path) -> None:
    rows = [(100, 1.0, "()"), (200, 2.0, "()"), (300, 3.0, "()"), (150, 4.0, "()"), (250, 5.0, "()")]
    folder = write_run(tmp_path / "run", *[(float(s), r, e) for s, r, e in rows])
    (folder / "out.log").write_text(f"[INFO:{PREFIX}resuming checkpoint.pt at step 100 of 300\n", encoding="utf-8")
    log = read_log(folder)
    returns = log.column("mean_episode_return")
    assert log.steps.tolist() == [100, 150, 250] and returns is not None and returns.tolist() == [1, 4, 5]
    assert "resumed once" in page_of(folder).text


def test_the_mean_speed_is_no_higher_than_the_chart_of_speed(tmp_path: Path) -> None:
    rows = [f"{tick},{100.0 + 5 * tick},{5 + 5 * tick},{(tick + 1) * 5000},1000\n" for tick in range(4)]
    (tmp_path / "logs.csv").write_text("# _tick,_time,elapsed_s,step,sps\n" + "".join(rows))
    run = read_run(tmp_path)
    assert run.log.steps_per_second == run.log.newest("sps") == 1000


def test_a_byte_that_is_no_text_damages_its_row_only(tmp_path: Path) -> None:
    (tmp_path / "logs.csv").write_bytes(b"# _tick,_time,step,mean_episode_return\n0,0,10,1\n1,1,2\xff0,2\n2,2,30,3\0\n")
    log = read_log(tmp_path)
    assert log.steps.tolist() == [10, 30] and log.columns["mean_episode_return"].tolist() == [1, 3]


def test_a_log_that_grew_and_was_torn_is_read(tmp_path: Path) -> None:
    (tmp_path / "logs.csv").write_text(
        "# _tick,_time,step,a\n0,0,1,5\n1,1,2\n# _tick,_time,step,a,b\n2,2,3,x,7\n3,3,nan,6,8\n4,4,4,9",
        encoding="utf-8",
    )
    log = read_log(tmp_path)
    a, b = log.column("a"), log.column("b")
    assert log.steps.tolist() == [1, 3] and log.column("c") is None and log.newest("a") == 5
    assert a is not None and np.array_equal(a, [5, np.nan], equal_nan=True)
    assert b is not None and np.array_equal(b, [np.nan, 7], equal_nan=True)


def test_rows_of_many_episodes_are_read_as_older_versions_wrote_them(tmp_path: Path) -> None:
    returns = ", ".join(map(str, range(200_000)))
    text = f'{HEADER}0,0,10,1,0,0,"({returns})"\n1,1,20,1,0,0,"(5.0,)"\n'
    (tmp_path / "logs.csv").write_text(text, encoding="utf-8")
    episodes = read_log(tmp_path).new_episodes
    assert episodes.counts.tolist() == [200_000, 1]
    assert (episodes.means[0], episodes.lows[0], episodes.highs[0]) == (99_999.5, 0, 199_999)


def test_a_summary_of_new_episodes_counts_before_the_list(tmp_path: Path) -> None:
    columns = "new_episodes,new_mean_return,new_min_return,new_max_return"
    rows = '0,0,1,"(5.0,)",1000,2.5,-1,7\n1,1,2,(),0,,,\n2,2,3,(),nan,1,1,1\n'
    (tmp_path / "logs.csv").write_text(f"# _tick,_time,step,episode_returns,{columns}\n{rows}")
    episodes = read_log(tmp_path).new_episodes
    assert episodes.counts.tolist() == [1000, 0, 0]
    assert (episodes.means[0], episodes.lows[0], episodes.highs[0]) == (2.5, -1, 7)


def test_a_quote_that_a_torn_row_leaves_open_damages_its_row_only(tmp_path: Path) -> None:
    (tmp_path / "logs.csv").write_text(
        f'{HEADER}0,0,10,1,0,0,"(1.0, 2.0)"\n1,1,20,1,0,0,"(1.0, 2.\n2,2,30,1,0,0,"(3.0,)"\n', encoding="utf-8"
    )
    assert read_log(tmp_path).steps.tolist() == [10, 20, 30]


def test_only_the_newest_warnings_and_errors_are_kept_whole(tmp_path: Path) -> None:
    lines = [f"[WARNING:{PREFIX}number {number}\n" for number in range(1000)]
    trace = [f"  line {number}\n" for number in range(1000)]
    (tmp_path / "out.log").write_text("".join([*lines, f"[ERROR:{PREFIX}the run failed\n", *trace]), encoding="utf-8")
    log = read_out_log(tmp_path)
    assert (log.num_warnings, log.num_errors, len(log.messages)) == (1000, 1, MAX_MESSAGES)
    assert len(log.messages[-1].lines) == MAX_LINES and log.messages[-1].lines[-1] == "  line 999"


def test_settings_that_somebody_chose_are_told_from_defaults_and_recipe() -> None:
    defaults = {"alpha": 0.99, "batch_size": 8, "env": "Pong", "model": "auto", "xpid": ""}
    args = defaults | {"env": "CartPole-v1", "model": "mlp", "batch_size": 99, "xpid": "name"}
    recipe = {"name": "CartPole-v1", "settings": {"model": "mlp", "batch_size": 4}}
    settings = {setting.name: setting for setting in compare(args, defaults, recipe)}
    assert settings["model"] == Setting("model", "mlp", "auto", "recipe CartPole-v1")
    assert settings["batch_size"].origin == "set for this run" and settings["alpha"].origin == ""
    assert "xpid" not in settings
    assert [setting.name for setting in compare(defaults, defaults, recipe) if setting.origin] == []


def test_settings_of_torchbeast_are_listed_without_defaults() -> None:
    assert compare({"num_actors": 48, "env": "PongNoFrameskip-v4"}) == [
        Setting("env", "PongNoFrameskip-v4", None, ""),
        Setting("num_actors", 48, None, ""),
    ]


def test_long_series_are_thinned_and_keep_their_mean() -> None:
    xs = np.arange(100_000.0)
    few_xs, few_ys = thinned(xs, np.where(xs % 2 == 0, 0.0, 1.0))
    assert few_xs.size == MAX_POINTS and few_ys == pytest.approx(np.full(MAX_POINTS, 0.5))
    assert thinned(np.array([1.0, 2.0]), np.array([np.nan, 3.0]))[1].tolist() == [3.0]
    assert smoothed(np.full(10, 2.0)) == pytest.approx(np.full(10, 2.0))


def test_the_band_spans_the_episodes_of_each_part_of_the_run() -> None:
    steps = np.array([1.0, 2.0, 99.0, 100.0])
    lows, highs = array("d", [1.0, 3.0, math.nan, 7.0]), array("d", [5.0, 3.0, math.nan, 9.0])
    band = band_of(steps, NewEpisodes(array("d", [2.0, 1.0, 0.0, 2.0]), highs, lows, highs), num_bins=2)
    assert band is not None
    assert (band.xs.tolist(), band.low.tolist(), band.high.tolist()) == ([2.0, 100.0], [1.0, 7.0], [5.0, 9.0])
    assert band_of(steps, NewEpisodes(array("d", [0.0] * 4), highs, lows, highs)) is None


@pytest.mark.parametrize(
    ("xs", "ys"), [([5.0], [1.0]), ([0.0], [0.0]), ([1.0, 2.0], [3.0, 3.0]), ([1.0, 2.0, 3.0], [-1e30, np.nan, 1e30])]
)
def test_a_chart_of_few_or_odd_points_has_finite_numbers(xs: list[float], ys: list[float]) -> None:
    chart = make_chart([Line("line", np.array(xs), np.array(ys))], size=(340, 170), label="a chart")
    assert "nan" not in repr(chart) and "inf" not in repr(chart)
    assert chart.paths or chart.dots


def test_numbers_are_short() -> None:
    assert [short_text(v) for v in (0, 12, 0.01234, 123.4, 9999, 12_400, 3_000_000, -20.5)] == [
        "0", "12", "0.0123", "123", "9,999", "12.4k", "3M", "-20.5",
    ]  # fmt: skip


def test_the_page_lands_in_the_run_folder_unless_told_otherwise(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = whole_run(tmp_path / "run")
    assert command.run(ReportConfig(run="run", savedir=str(tmp_path))) == 0
    assert command.run(ReportConfig(run=str(folder), out=(out := tmp_path / "new" / "page.html"))) == 0
    assert (folder / "report.html").read_text() == out.read_text()
    assert capsys.readouterr().out == f"report: {folder / 'report.html'}\nreport: {out}\n"


def test_what_is_no_run_is_named_with_its_places(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"run = 'nothing': there is no meta\.json or logs\.csv in nothing or "):
        command.run(ReportConfig(run="nothing", savedir=str(tmp_path)))
    with pytest.raises(ConfigError, match=r"out = 'page\.pdf': must end in \.html"):
        ReportConfig(run="run", out=Path("page.pdf"))
    (tmp_path / "file").touch()
    whole_run(tmp_path / "run")
    with pytest.raises(ConfigError, match="out = "):
        command.run(ReportConfig(run="run", savedir=str(tmp_path), out=tmp_path / "file" / "page.html"))


def test_the_command_line_is_understood(started: list[Any]) -> None:
    cli.main(["report", "latest", "--savedir", "runs", "--out", "page.html"])
    assert started == [ReportConfig(run="latest", savedir=f"{Path.cwd()}/runs", out=Path.cwd() / "page.html")]


def test_the_machine_is_described_in_plain_values() -> None:
    hardware, versions = describe_hardware(), describe_versions()
    assert json.loads(json.dumps(hardware)) == hardware and json.loads(json.dumps(versions)) == versions
    assert hardware["cores"] >= 1 and hardware["memory_bytes"] > 1 << 28 and hardware["cpu"]
    assert hardware.keys() == {"cpu", "cores", "memory_bytes", "gpus"} and "torch" in versions
