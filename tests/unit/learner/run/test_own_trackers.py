"""A tracker of the user's own receives the rows of a run, and no error of it ends a training."""

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest

from kubebeast_learner.config import ConfigError, RunConfig
from kubebeast_learner.run.own_trackers import load_trackers
from kubebeast_runs.log import RunLog

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
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING), run_log(tmp_path, "Failing", "Good") as log:
        log.record({})
        for step in range(3):
            log.log({"step": step})
        monkeypatch.setattr(Failing, "failing", False)
        log.log({"step": 3})
    assert log.failures.counts[f"{MODULE}:Failing"] == 5
    assert [event[1] for event in EVENTS if event[0] == "log"] == [0, 1, 2, 3, 3]
    assert caplog.text.count("RuntimeError: the service is gone; the run goes on without") == 1
    assert "can be written again" in caplog.text
    assert (tmp_path / "run" / "logs.csv").read_text().count("\n") == 5  # with the names of the columns


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
        ({"tracker": ("wandb",)}, "tracker = 'wandb': must be module:Class"),
        ({"tracker_options": '{"a:B": {}}'}, "tracker_options = 'a:B': tracker names no such class"),
        ({"tracker": ("a:B",), "tracker_options": '{"a:B": 3}'}, "tracker_options = 3: must be a JSON object"),
    ],
)
def test_settings_that_fit_no_tracker_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        RunConfig(**settings)
