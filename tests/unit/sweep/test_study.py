"""Trials are kept in a file: a sweep that was killed at any moment goes on without a lost or doubled one."""

import errno
import json
import threading
from pathlib import Path
from typing import Any

import pytest
import yaml
from optuna.storages.journal import JournalFileBackend
from optuna.trial import TrialState

from kubebeast_common.settings import ConfigError
from kubebeast_sweep.plan import Plan, read_plan
from kubebeast_sweep.scores import NUM_POINTS
from kubebeast_sweep.trials import journal
from kubebeast_sweep.trials.study import JOURNAL, UNBEGUN, Study

PARAMETERS: dict[str, Any] = {"batch_size": [4, 8], "learning_rate": [0.001, 0.01, 0.1]}


def plan_of(folder: Path, **entries: Any) -> Plan:
    file = folder / "sweep.yaml"
    settings = {"env": "X", "total_steps": 1000}
    content = {"settings": settings, "parameters": PARAMETERS, "num_trials": 6, **entries}
    file.write_text(yaml.safe_dump({name: value for name, value in content.items() if value is not None}))
    return read_plan(file)


@pytest.mark.parametrize("search", ["tpe", "random", "grid"])
def test_no_combination_is_tried_twice(tmp_path: Path, search: str) -> None:
    study = Study(plan_of(tmp_path, search=search), tmp_path)
    tried = []
    while (trial := study.ask()) is not None:
        tried.append((trial.params["batch_size"], trial.params["learning_rate"]))
        study.complete(trial, trial.params["learning_rate"])

    assert sorted(tried) == [(b, rate) for b in PARAMETERS["batch_size"] for rate in PARAMETERS["learning_rate"]]
    assert len(study.trials()) == 6


@pytest.mark.parametrize("search", ["tpe", "random"])
@pytest.mark.parametrize(
    "parameters", [{"batch_size": {"log": [2, 16]}}, {"batch_size": {"log": [2, 6]}, "learning_rate": [0.1, 0.2, 0.3]}]
)
def test_a_search_goes_on_until_it_has_tried_every_combination(
    tmp_path: Path, search: str, parameters: dict[str, Any]
) -> None:
    plan = plan_of(tmp_path, search=search, parameters=parameters, num_trials=24)
    assert plan.num_trials == 15

    study, tried = Study(plan, tmp_path), set()
    while (trial := study.ask()) is not None:
        tried.add(tuple(trial.params.values()))
        study.complete(trial, float(trial.params["batch_size"]))

    assert len(tried) == len(study.trials()) == 15


def test_huge_spaces_are_searched_without_a_list_of_their_combinations(tmp_path: Path) -> None:
    parameters = {f"parameter_{number}": {"range": [1, 10**9]} for number in range(8)}
    for search in ("tpe", "random", "grid"):
        (folder := tmp_path / search).mkdir()
        study = Study(plan_of(folder, search=search, parameters=parameters), folder)
        trial = study.ask()
        assert trial is not None and set(trial.params) == set(parameters)
        assert len(study._choose({()}, 9) or {}) == 8


def test_a_random_search_begins_as_a_population_does_and_goes_on_after_each_kill(tmp_path: Path) -> None:
    parameters = {"learning_rate": {"log": [1e-5, 1e-2]}, "batch_size": {"range": [4, 64], "step": 4}}
    members = {"members": 4, "interval": 100}
    entries: dict[str, Any] = {"parameters": parameters, "search_seed": 7}
    found: dict[str, list[dict[str, Any]]] = {"whole": [], "killed": [], "pbt": []}
    for name, trials in found.items():
        (folder := tmp_path / name).mkdir()
        population = {"search": "pbt", "population": members, "num_trials": None}
        plan = plan_of(folder, **entries, **(population if name == "pbt" else {"search": "random"}))
        study = Study(plan, folder)
        while len(trials) < 4 and (trial := study.ask()) is not None:
            trials.append(trial.params)
            study.complete(trial, 1.0)
            if name == "killed":
                study._study.enqueue_trial(study._draw())  # as at the moment before a trial begins
                study = Study(plan, folder)

    assert found["whole"] == found["killed"] == found["pbt"]
    assert len({each["learning_rate"] for each in found["whole"]}) == 4


def test_a_process_goes_on_with_the_trials_of_one_that_was_killed(tmp_path: Path) -> None:
    plan = plan_of(tmp_path)
    killed = Study(plan, tmp_path)
    first, second = killed.ask(), killed.ask()
    assert first is not None and second is not None
    first.set_user_attr("score of seed 1", 2.0)
    killed.report(second, 1.0, 3)
    killed.complete(first, 2.0)

    study = Study(plan, tmp_path)
    (trial,) = study.begun()
    assert (trial.number, trial.params) == (second.number, second.params)
    study.complete(trial, 3.0)
    while (other := study.ask()) is not None:
        study.complete(other, 1.0)
    trials = study.trials()
    assert [each.state for each in trials] == [TrialState.COMPLETE] * 6
    assert len({tuple(each.params.items()) for each in trials}) == 6
    best = study.best()
    assert best is not None and best.number == second.number


def test_a_trial_without_all_parameters_is_not_counted(tmp_path: Path) -> None:
    plan = plan_of(tmp_path)
    study = Study(plan, tmp_path)
    study._study.ask()  # as at the moment before its parameters are drawn

    again = Study(plan, tmp_path)
    assert again.begun() == []
    assert [each.user_attrs for each in again._study.get_trials()] == [{"reason": UNBEGUN}]
    assert again.trials() == []


def test_half_a_line_and_a_lock_of_a_killed_process_are_removed(tmp_path: Path) -> None:
    plan = plan_of(tmp_path)
    trial = Study(plan, tmp_path).ask()
    assert trial is not None
    with open(tmp_path / JOURNAL, "ab") as file:
        file.write(b'{"op_code": 6, "worker_id"')
    (tmp_path / f"{JOURNAL}.lock").symlink_to(tmp_path / JOURNAL)

    study = Study(plan, tmp_path)
    assert [each.number for each in study.begun()] == [trial.number]
    assert study.ask() is not None


def test_a_reader_writes_nothing_not_even_after_half_a_line(tmp_path: Path) -> None:
    plan, path = plan_of(tmp_path), tmp_path / JOURNAL
    path.touch()
    with pytest.raises(ConfigError, match="it has no trial yet"):
        Study(plan, tmp_path, is_read_only=True)
    trial = Study(plan, tmp_path).ask()
    assert trial is not None
    path.write_bytes(path.read_bytes() + b'{"op_code": 6, "worker_id"')
    before = path.read_bytes()

    for _ in range(2):
        assert [each.number for each in Study(plan, tmp_path, is_read_only=True).trials()] == [trial.number]
    assert path.read_bytes() == before
    assert [each.number for each in Study(plan, tmp_path).begun()] == [trial.number]


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    plan, path = plan_of(tmp_path), tmp_path / JOURNAL
    Study(plan, tmp_path).ask()
    path.write_bytes(b"not JSON\n" + path.read_bytes())

    with pytest.raises(ConfigError, match=rf"{path} is damaged"):
        Study(plan, tmp_path)


class FullVolume:
    """A volume on which the file has no room for whole lines, until there is space."""

    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.path, self.has_space, self.was_full = path, threading.Event(), threading.Event()
        self._append = JournalFileBackend.append_logs
        monkeypatch.setattr(JournalFileBackend, "append_logs", lambda file, logs: self.append(file, logs))
        monkeypatch.setattr(journal, "RETRY_S", 0.01)

    def append(self, file: JournalFileBackend, logs: list[dict[str, Any]]) -> None:
        if self.has_space.is_set():
            return self._append(file, logs)
        with open(self.path, "ab") as half:
            half.write(json.dumps(logs[0]).encode()[:9])
        self.was_full.set()
        raise OSError(errno.ENOSPC, "No space left on device")


def test_trials_wait_for_space_on_a_full_volume(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = plan_of(tmp_path)
    study = Study(plan, tmp_path)
    trial = study.ask()
    assert trial is not None
    volume = FullVolume(tmp_path / JOURNAL, monkeypatch)
    ending = threading.Thread(target=study.complete, args=(trial, 2.0))
    ending.start()
    volume.was_full.wait()
    volume.has_space.set()
    ending.join()

    (only,) = Study(plan, tmp_path).trials()
    assert (only.state, only.value) == (TrialState.COMPLETE, 2.0)


def test_a_stop_ends_the_wait_for_space_and_no_half_line_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan, stop = plan_of(tmp_path), threading.Event()
    study = Study(plan, tmp_path, stop)
    trial = study.ask()
    assert trial is not None
    volume = FullVolume(tmp_path / JOURNAL, monkeypatch)
    stop.set()
    for _ in range(2):
        with pytest.raises(OSError, match="No space left"):
            trial.set_user_attr("cpu_s", 1.0)

    volume.has_space.set()
    assert [each.number for each in Study(plan, tmp_path).begun()] == [trial.number]


def test_a_point_that_was_reported_before_is_compared_once(tmp_path: Path) -> None:
    plan = plan_of(tmp_path)
    trial = Study(plan, tmp_path).ask()
    assert trial is not None
    trial.report(1.0, 3)

    study = Study(plan, tmp_path)
    (again,) = study.begun()
    assert not study.report(again, 1.0, 3)  # a warning of Optuna would be an error
    study.report(again, 2.0, 4)
    assert study.trials()[0].intermediate_values == {3: 1.0, 4: 2.0}


@pytest.mark.parametrize(("direction", "better"), [("maximize", 1.0), ("minimize", -1.0)])
@pytest.mark.parametrize("pruner", ["median", "asha"])
def test_a_trial_that_is_worse_than_others_at_the_same_point_is_pruned(
    tmp_path: Path, pruner: str, direction: str, better: float
) -> None:
    study = Study(plan_of(tmp_path, pruner=pruner, direction=direction, num_trials=6), tmp_path)
    pruned = []
    for score in (5.0, 6.0, 7.0, 8.0, 1.0):
        trial = study.ask()
        assert trial is not None
        points = range(1, NUM_POINTS)
        if any(study.report(trial, better * score * point, point) for point in points):
            study.prune(trial)
            pruned.append(score)
        else:
            study.complete(trial, better * score)

    assert 1.0 in pruned and 8.0 not in pruned


def test_without_a_pruner_no_trial_is_pruned(tmp_path: Path) -> None:
    study = Study(plan_of(tmp_path, pruner="none"), tmp_path)
    for score in (5.0, 6.0, 7.0, 8.0, 1.0):
        trial = study.ask()
        assert trial is not None
        assert not any(study.report(trial, score, point) for point in range(1, NUM_POINTS))
        study.complete(trial, score)


def test_the_parameter_that_decides_has_the_larger_importance(tmp_path: Path) -> None:
    study = Study(plan_of(tmp_path, search="grid"), tmp_path)
    assert study.importances() == {}
    while (trial := study.ask()) is not None:
        study.complete(trial, 100.0 * trial.params["learning_rate"] + 0.001 * trial.params["batch_size"])

    shares = study.importances()
    assert set(shares) == set(PARAMETERS)
    assert shares["learning_rate"] > shares["batch_size"]
