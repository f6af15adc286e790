"""Callbacks of the user's own are called in order, can end a run, and their errors end it in words."""

from pathlib import Path
from typing import Any

import pytest

from kubebeast_learner.config import ConfigError, RunConfig
from kubebeast_learner.run.callbacks import CallbackError, Callbacks, load_callbacks
from kubebeast_learner.run.task_returns import Episode

MODULE = __name__
EPISODE = Episode("Pong", 1.0, 10)
CALLS: list[Any] = []


class Watching:
    def __init__(self, folder: Path, label: str = "first") -> None:
        self._label = label
        CALLS.append((label, folder.name))

    def on_update(self, step: int, numbers: Any) -> None:
        CALLS.append((self._label, step, numbers))

    def on_end(self, step: int, error: str) -> None:
        CALLS.append((self._label, step, error))


class Ending:
    def __init__(self, folder: Path) -> None: ...

    def on_episode(self, step: int, episode: Any) -> bool:
        return bool(episode.episode_return > 0)


class Raising:
    def __init__(self, folder: Path) -> None: ...

    def on_checkpoint(self, step: int, place: str) -> None:
        raise KeyError(place)


class Misspelt:
    def __init__(self, folder: Path) -> None: ...

    def on_update(self, step: int, numbers: Any) -> None: ...

    def on_step(self, step: int) -> None: ...


class Empty:
    def __init__(self, folder: Path) -> None: ...


class Broken(Watching):
    def __init__(self, folder: Path) -> None:
        raise PermissionError("no key")


@pytest.fixture(autouse=True)
def no_calls() -> None:
    CALLS.clear()


def load(*names: str, options: str = "{}") -> Callbacks:
    config = RunConfig(callback=tuple(f"{MODULE}:{name}" for name in names), callback_options=options)
    return load_callbacks(config)(Path("runs/run"))


def test_each_callback_is_called_until_the_end() -> None:
    callbacks = load("Watching", options=f'{{"{MODULE}:Watching": {{"label": "second"}}}}')
    callbacks.on_update(10, {"total_loss": 1.0})
    callbacks.on_episode(10, EPISODE)
    callbacks.on_end(20, "")
    callbacks.on_update(20, {})
    assert CALLS == [("second", "run"), ("second", 10, {"total_loss": 1.0}), ("second", 20, "")]
    assert callbacks.end == ""


def test_a_true_value_ends_the_run() -> None:
    callbacks = load("Watching", "Ending")
    callbacks.on_episode(5, Episode("Pong", -1.0, 10))
    assert callbacks.end == ""
    callbacks.on_episode(5, EPISODE)
    assert callbacks.end == f"on_episode of {MODULE}:Ending has returned a true value"


def test_an_error_names_the_class_the_method_and_the_line() -> None:
    reason = rf"callback = '{MODULE}:Raising': on_checkpoint: KeyError: .*here.* \(test_callbacks\.py, line"
    with pytest.raises(CallbackError, match=reason):
        load("Raising").on_checkpoint(5, "here")


class Failing(Watching):
    def on_end(self, step: int, error: str) -> None:
        raise KeyError("no file")


def test_each_callback_learns_of_the_end_although_another_one_raises(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(CallbackError, match="Failing': on_end: KeyError: 'no file'"):
        load("Failing", "Watching").on_end(20, "")
    load("Failing", "Watching").on_end(20, "OSError: no space")

    assert CALLS[2::3] == [("first", 20, ""), ("first", 20, "OSError: no space")]
    assert ["Failing': on_end: KeyError" in text for text in caplog.messages] == [True]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("Misspelt", "on_step is none of on_update, on_episode, on_checkpoint, on_end"),
        ("Empty", "it has none of on_update, on_episode, on_checkpoint, on_end"),
        ("Broken", "cannot be made: PermissionError: no key"),
        ("Missing", "Missing"),
        ("MODULE", "must be a class, it is"),
    ],
)
def test_a_class_that_is_no_callback_is_refused(name: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=rf"callback = '{MODULE}:{name}': .*{reason}"):
        load(name)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"callback": ("nomodule",)}, "callback = 'nomodule': must be module:Class"),
        ({"callback_options": '{"a:B": {}}'}, "callback_options = 'a:B': callback does not name it"),
    ],
)
def test_settings_that_do_not_fit_are_refused(settings: dict[str, Any], reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        RunConfig(**settings)


def test_options_that_the_class_does_not_take_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"callback_options = .*Ending\(folder\): got an unexpected keyword argument"):
        load("Ending", options=f'{{"{MODULE}:Ending": {{"patience": 1}}}}')
