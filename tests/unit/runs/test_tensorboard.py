"""TensorBoard shows each run once, its numbers in groups, and its settings."""

from pathlib import Path

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.backend.event_processing.event_multiplexer import EventMultiplexer
from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData

from kubebeast_learner.run.new_episodes import NewEpisodes
from kubebeast_learner.run.stats import RunStats
from kubebeast_runs.log import RunLog
from kubebeast_runs.trackers.tags import tag_of
from tests.unit.learner.run.test_run_stats import pool
from tests.unit.runs.test_run_log import read_by_header, write


def test_tensorboard_shows_a_run_once(tmp_path: Path) -> None:
    write(tmp_path, {"step": 1, "total_loss": 0.5})
    runs = EventMultiplexer().AddRunsFromDirectory(str(tmp_path)).Runs()
    assert list(runs) == ["run/tensorboard"]


def test_tensorboard_gets_every_finite_number_at_its_step(tmp_path: Path) -> None:
    folder = write(tmp_path, {"step": 10, "total_loss": 0.5, "grad_norm": float("nan"), "sps": None})
    events = EventAccumulator(str(folder / "tensorboard")).Reload()
    assert events.Tags()["scalars"] == ["losses/total_loss"]
    (event,) = events.Scalars("losses/total_loss")
    assert (event.step, event.value) == (10, 0.5)


def test_tensorboard_holds_what_logs_csv_holds(tmp_path: Path) -> None:
    write(tmp_path, {"step": 10, "total_loss": 0.5, "entropy": 0.25}, {"step": 20, "total_loss": 0.75, "entropy": 0.5})
    folder = write(tmp_path, {"step": 30, "total_loss": 1.5, "entropy": 0.125})
    columns = read_by_header(folder)
    events = EventAccumulator(str(folder / "tensorboard")).Reload()
    tags = {tag.partition("/")[2]: tag for tag in events.Tags()["scalars"]}
    assert tags.keys() == columns.keys() - {"_tick", "_time", "step"}
    for name, tag in tags.items():
        scalars = [(event.step, event.value) for event in events.Scalars(tag)]
        assert scalars == list(zip(columns["step"], columns[name], strict=True))


@pytest.mark.parametrize(
    ("column", "tag"),
    [
        ("pg_loss", "losses/pg_loss"),
        ("mean_episode_return", "charts/mean_episode_return"),
        ("mean_episode_return/ALE/Pong-v5", "tasks/mean_episode_return/ALE/Pong-v5"),
        ("sps/rank1", "ranks/sps/rank1"),
        ("loss/logit_penalty", "losses/logit_penalty"),
        ("info/found/wood", "info/found/wood"),
        ("info/rank0", "info/rank0"),
        ("curriculum/mean_return", "curriculum/mean_return"),
        ("league/elo", "league/elo"),
        ("something_new", "run/something_new"),
    ],
)
def test_tags_are_grouped(column: str, tag: str) -> None:
    assert tag_of(column) == tag


def test_every_logged_column_has_a_group() -> None:
    columns = {*RunStats(total_steps=1).snapshot(pool()).columns(), *NewEpisodes().columns()}
    ungrouped = {column for column in columns if tag_of(column).startswith("run/")}
    assert ungrouped == {"step", "elapsed_s", "episode_returns"}


def test_the_settings_are_hyperparameters_for_tensorboard(tmp_path: Path) -> None:
    settings = {"learning_rate": 0.1, "use_lstm": True, "env": "Pong", "hidden_sizes": [64, 64], "time_limit": None}
    with RunLog(tmp_path, "run") as log:
        log.record(settings)
        log.log({"step": 1, "total_loss": 0.5})
    events = EventAccumulator(str(log.folder / "tensorboard")).Reload()
    content = events.PluginTagToContent("hparams")["_hparams_/session_start_info"]
    hparams = HParamsPluginData.FromString(content).session_start_info.hparams
    assert hparams["learning_rate"].number_value == 0.1 and hparams["use_lstm"].bool_value
    assert (hparams["env"].string_value, hparams["hidden_sizes"].string_value) == ("Pong", "[64, 64]")
