"""The file of a sweep is checked before anything is trained."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from kubebeast_common.settings import ConfigError
from kubebeast_sweep.plan import Plan, read_plan, require_same

FILE: dict[str, Any] = {
    "settings": {"env": "CartPole-v1", "total_steps": 1000, "learning_rate_schedule": "linear"},
    "parameters": {"learning_rate": {"log": [1e-4, 1e-2]}, "batch_size": [4, 8]},
    "num_trials": 5,
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "sweep.yaml"


def plan_of(file: Path, **entries: Any) -> Plan:
    given = {name: value for name, value in {**FILE, **entries}.items() if value is not ...}
    file.write_text(yaml.safe_dump(given, sort_keys=False))
    return read_plan(file)


def test_a_file_names_settings_parameters_and_the_number_of_trials(file: Path) -> None:
    plan = plan_of(file)

    assert (plan.command, plan.search, plan.pruner, plan.seeds) == ("mono", "tpe", "median", (1,))
    assert (plan.total_steps, plan.num_trials, list(plan.space)) == (1000, 5, ["learning_rate", "batch_size"])


def test_numbers_are_written_as_in_yaml_1_2(file: Path) -> None:
    file.write_text("settings: {env: X, total_steps: 10}\nparameters: {rate: {log: [1e-5, 1e-2]}}\nnum_trials: 1\n")

    assert read_plan(file).space["rate"].to_internal_repr(0.5) == 0.5


def test_a_grid_has_as_many_trials_as_combinations(file: Path) -> None:
    parameters = {"batch_size": [4, 8], "unroll_length": [20, 40, 80]}

    assert plan_of(file, search="grid", parameters=parameters, num_trials=...).num_trials == 6
    assert plan_of(file, parameters=parameters, num_trials=100).num_trials == 6


@pytest.mark.parametrize(
    ("entries", "reason"),
    [
        ({"command": "tune"}, "command = 'tune': must be mono, train, learner"),
        ({"search": "bayes"}, "search = 'bayes': must be tpe, random, grid"),
        ({"pruner": "hyperband"}, "pruner = 'hyperband': must be median, asha, none"),
        ({"direction": "up"}, "direction = 'up': must be maximize, minimize"),
        ({"settings": ...}, "settings = None: must be a mapping"),
        ({"settings": {"env": "X"}}, "settings.total_steps = None: must be a whole number"),
        ({"settings": {"total_steps": 0}}, "settings.total_steps = 0: must be a whole number"),
        ({"settings": {"total_steps": 10, "xpid": "a"}}, "settings = 'xpid': is given to each run"),
        ({"parameters": {"seed": [1, 2]}}, "parameters = 'seed': is the same for all runs"),
        ({"parameters": {"env": ["A", "B"]}}, "parameters = 'env': is in settings as well"),
        ({"seeds": []}, "seeds = []: must be a list"),
        ({"seeds": [1, 1]}, "seeds = [1, 1]: must be different"),
        ({"seeds": [-1]}, "seeds = -1: must be a whole number"),
        ({"seeds": 3}, "seeds = 3: must be a list"),
        ({"num_trials": 0}, "num_trials = 0: must be a whole number"),
        ({"num_trials": ...}, "num_trials = None: must be a whole number"),
        ({"search": "grid"}, "search = 'grid': needs choices"),
        ({"window": 0}, "window = 0: must be above 0"),
        ({"window": 1.5}, "window = 1.5: must be above 0"),
        ({"goal": "high"}, "goal = 'high': must be a number"),
        ({"score": ""}, "score = '': must be return or a column"),
        ({"goal": 10**400}, "must be a number"),
        ({"sed": [1]}, "sed = ['1']: file"),
    ],
)
def test_an_invalid_entry_is_named_with_its_value(file: Path, entries: dict[str, Any], reason: str) -> None:
    with pytest.raises(ConfigError) as caught:
        plan_of(file, **entries)

    assert reason in str(caught.value)


def test_a_file_that_cannot_be_read_is_named(file: Path) -> None:
    with pytest.raises(ConfigError, match=r"file = .*sweep\.yaml"):
        read_plan(file)


@pytest.mark.parametrize(
    ("line", "reason"),
    [("num_trials: 6", "'num_trials' is given twice"), ("goal: " + "1" * 5000, "Exceeds the limit")],
)
def test_a_file_with_a_doubled_name_or_an_endless_number_is_refused(file: Path, line: str, reason: str) -> None:
    file.write_text(yaml.safe_dump(FILE) + line + "\n")

    with pytest.raises(ConfigError, match=f"file = .*: not YAML: .*{reason}"):
        read_plan(file)


def test_a_sweep_keeps_what_makes_its_scores_comparable(file: Path, tmp_path: Path) -> None:
    plan_of(file)
    saved = tmp_path / "saved.yaml"
    saved.write_bytes(file.read_bytes())

    require_same(plan_of(file, num_trials=9, pruner="none", goal=3.0), saved)
    for entries in ({"seeds": [1, 2]}, {"window": 0.5}, {"parameters": {"batch_size": [4]}}):
        with pytest.raises(ConfigError, match=rf"{next(iter(entries))} = .* which it keeps"):
            require_same(plan_of(file, **entries), saved)


def test_a_sweep_may_change_settings_without_an_effect_on_scores(file: Path, tmp_path: Path) -> None:
    plan_of(file)
    saved = tmp_path / "saved.yaml"
    saved.write_bytes(file.read_bytes())
    settings = {**FILE["settings"], "log_level": "debug", "checkpoint_interval_minutes": 1, "tracker": "wandb"}

    require_same(plan_of(file, settings=settings), saved)
    with pytest.raises(ConfigError, match=r"settings = .* which it keeps"):
        require_same(plan_of(file, settings={**settings, "discounting": 0.9}), saved)


@pytest.mark.parametrize("name", ["hidden_sizes", "optimizer", "model"])
def test_a_population_has_no_parameter_that_a_run_keeps(file: Path, name: str) -> None:
    population = {"search": "pbt", "population": {"members": 4, "interval": 100}, "num_trials": ...}
    with pytest.raises(ConfigError, match=f"parameters = '{name}': cannot change in a run"):
        plan_of(file, parameters={name: ["a", "b"]}, **population)
    assert plan_of(file, parameters={"learning_rate": [0.1, 0.2]}, **population).population is not None


@pytest.mark.parametrize(("direction", "score"), [("maximize", 475.0), ("minimize", 475.0)])
def test_a_goal_is_a_bound_in_the_direction_of_the_search(file: Path, direction: str, score: float) -> None:
    plan = plan_of(file, goal=score, direction=direction)
    better = 1.0 if direction == "maximize" else -1.0

    assert plan.reaches_goal(score) and plan.reaches_goal(score + better)
    assert not plan.reaches_goal(score - better)
