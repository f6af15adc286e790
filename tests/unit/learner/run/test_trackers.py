"""Trackers that settings name receive the rows of a run, and no error of theirs ends a training."""

import logging
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest

from kubebeast_learner.config import ConfigError, RunConfig
from kubebeast_learner.run.trackers import load_trackers
from kubebeast_runs.log import RunLog
from kubebeast_runs.trackers.services import NAMES
from kubebeast_runs.trackers.services.choice import SERVICES

MODULE = __name__
EVENTS: list[Any] = []


class Good:
    def __init__(self, folder: Path, label: str = "") -> None:
        EVENTS.append(("made", folder.name, label))

    def begin(self, meta: Mapping[str, Any]) -> None:
        EVENTS.append(("begin", meta["xpid"], meta["args"]))

    def log(self, step: int, values: Mapping[str, Any]) -> None:
        EVENTS.append(("log", step, dict(values)))

    def end(self, *, successful: bool) -> None:
        EVENTS.append(("end", successful))


class Failing(Good):
    failing: ClassVar[bool] = True

    def begin(self, meta: Mapping[str, Any]) -> None:
        raise KeyError("no project")

    def log(self, step: int, values: Mapping[str, Any]) -> None:
        if self.failing:
            raise RuntimeError("the service is gone")
        super().log(step, values)

    def end(self, *, successful: bool) -> None:
        raise OSError("the pipe is closed")


class Exiting(Good):
    def begin(self, meta: Mapping[str, Any]) -> None:
        raise SystemExit(3)

    def log(self, step: int, values: Mapping[str, Any]) -> None:
        raise KeyboardInterrupt


class Collecting(Good):
    def artifact(self, step: int, path: Path) -> None:
        EVENTS.append(("artifact", step, path))


class Deaf:
    def __init__(self, folder: Path) -> None: ...

    def log(self, step: int, values: Mapping[str, Any]) -> None: ...


class Refusing(Good):
    def __init__(self, folder: Path) -> None:
        raise PermissionError("no key")


@pytest.fixture(autouse=True)
def no_events(monkeypatch: pytest.MonkeyPatch) -> None:
    EVENTS.clear()
    monkeypatch.setattr(Failing, "failing", True)


def run_log(savedir: Path, *names: str, options: str = "{}") -> RunLog:
    config = RunConfig(tracker=tuple(f"{MODULE}:{name}" for name in names), tracker_options=options)
    return RunLog(savedir, "run", load_trackers(config))


def wait_until(condition: Callable[[], bool]) -> None:
    """Blocks until the thread of a tracker has made the condition true; the test's time limit ends it otherwise."""
    while not condition():
        time.sleep(0.001)


def test_a_tracker_receives_begin_rows_and_end(tmp_path: Path) -> None:
    with run_log(tmp_path, "Good", options=f'{{"{MODULE}:Good": {{"label": "a"}}}}') as log:
        log.record({"seed": 1})
        log.log({"step": 80, "sps": 5.0, "mean_episode_return": None})
        log.successful = True
    assert EVENTS == [
        ("made", "run", "a"),
        ("begin", "run", {"seed": 1}),
        ("log", 80, {"sps": 5.0, "mean_episode_return": None}),
        ("end", True),
    ]


def test_errors_of_a_tracker_are_counted_and_reported_and_the_others_go_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING), run_log(tmp_path, "Failing", "Good") as log:
        counts = log.failures.counts
        log.record({})
        wait_until(lambda: counts[f"{MODULE}:Failing"] == 1)
        for step in range(3):
            log.log({"step": step})
        wait_until(lambda: counts[f"{MODULE}:Failing"] == 4)
    assert counts[f"{MODULE}:Failing"] == 5
    assert caplog.text.count("KeyError: 'no project'; the run goes on without") == 1
    assert caplog.text.count("the run goes on without") == 1
    assert [event[1] for event in EVENTS if event[0] == "log"] == [0, 1, 2]
    assert (tmp_path / "run" / "logs.csv").read_text().count("\n") == 4  # with the names of the columns


def test_the_end_of_an_outage_is_logged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING), run_log(tmp_path, "Failing") as log:
        log.record({})
        log.log({"step": 0})
        wait_until(lambda: log.failures.counts[f"{MODULE}:Failing"] == 2)
        log.failures.report()
        monkeypatch.setattr(Failing, "failing", False)
        log.log({"step": 1})
        wait_until(lambda: ("log", 1, {}) in EVENTS)
        log.log({"step": 2})
        wait_until(lambda: ("log", 2, {}) in EVENTS)
        log.log({"step": 3})
    assert f"failed writes: 2 of {MODULE}:Failing" in caplog.text


def test_a_library_that_exits_ends_no_training(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING), run_log(tmp_path, "Exiting") as log:
        log.record({})
        for step in range(3):
            log.log({"step": step})
        log.successful = True
    assert log.failures.counts[f"{MODULE}:Exiting"] == 4
    assert EVENTS[-1] == ("end", True)


def test_a_tracker_may_take_the_weights_of_checkpoints(tmp_path: Path) -> None:
    weights = tmp_path / "run" / "weights.safetensors"
    with run_log(tmp_path, "Collecting", "Good") as log:
        log.record({})
        log.note_checkpoint(20)  # of a run in a bucket, which has no weights here
        weights.touch()
        log.note_checkpoint(40)
    assert [event for event in EVENTS if event[0] == "artifact"] == [("artifact", 40, weights)]
    assert sum(log.failures.counts.values()) == 0


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("Missing", "{}", "Missing"),
        ("MODULE", "{}", "must be a class"),
        ("Good", '{"colour": 1}', r"tracker_options = .*colour"),
        ("Deaf", "{}", "cannot be made: TypeError: it has no begin and no end"),
        ("Refusing", "{}", "cannot be made: PermissionError: no key"),
    ],
)
def test_a_wrong_tracker_is_named_before_the_run_begins(tmp_path: Path, name: str, options: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        run_log(tmp_path, name, options=f'{{"{MODULE}:{name}": {options}}}')
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"tracker": ("wand",)}, "tracker = 'wand': must be wandb, mlflow, trackio, module:Class"),
        ({"tracker": ("wandb", "wandb")}, "tracker = 'wandb': is given twice"),
        ({"tracker_options": '{"a:B": {}}'}, "tracker_options = 'a:B': tracker does not name it"),
        ({"tracker": ("a:B",), "tracker_options": '{"a:B": 3}'}, "tracker_options = 3: must be a JSON object"),
    ],
)
def test_settings_that_fit_no_tracker_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        RunConfig(**settings)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("wandb", '{"colour": 1}', "tracker_options: wandb.colour = 1: there is no such option, but checkpoints, "),
        ("wandb", '{"tags": "a"}', "tracker_options: wandb.tags = 'a': must be a list of texts"),
        ("wandb", '{"mode": "on"}', "tracker_options: wandb.mode = 'on': must be one of '', 'online', 'offline'"),
        ("mlflow", '{"experiment": 1}', "tracker_options: mlflow.experiment = 1: must be a text"),
        ("mlflow", '{"checkpoints": 1}', "tracker_options: mlflow.checkpoints = 1: must be true or false"),
        ("trackio", '{"timeout_s": true}', "tracker_options: trackio.timeout_s = True: must be a number"),
        ("trackio", '{"timeout_s": 0}', "tracker_options: trackio.timeout_s = 0: must be positive"),
    ],
)
def test_a_wrong_option_of_a_service_is_named(name: str, options: str, message: str) -> None:
    with pytest.raises(ConfigError) as refused:
        load_trackers(RunConfig(tracker=(name,), tracker_options=f'{{"{name}": {options}}}'))
    assert str(refused.value).startswith(message)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("has_folder", [False, True])
def test_a_missing_package_is_named_with_its_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, has_folder: bool
) -> None:
    if has_folder:  # such as the one that W&B makes
        (tmp_path / name).mkdir()
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    monkeypatch.delitem(sys.modules, name, raising=False)
    with pytest.raises(ConfigError, match=rf"tracker = '{name}': .*pip install 'kubebeast-runs\[{name}\]'"):
        load_trackers(RunConfig(tracker=(name,)))


def test_every_service_has_a_run() -> None:
    assert tuple(SERVICES) == NAMES
