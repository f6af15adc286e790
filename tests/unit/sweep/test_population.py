"""The worst members of a population copy the best ones and change their parameters; the others go on."""

import random
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubebeast_common.settings import ConfigError
from kubebeast_sweep.plan import Plan, read_plan
from kubebeast_sweep.population import GENERATION, MEMBER, PARENT, explored
from kubebeast_sweep.space import read_space
from kubebeast_sweep.trials.study import Study

FILE: dict[str, Any] = {
    "search": "pbt",
    "settings": {"env": "X", "total_steps": 250},
    "parameters": {"learning_rate": {"log": [1e-4, 1e-2]}, "batch_size": [4, 8, 16]},
    "population": {"members": 4, "interval": 100},
    "seeds": [10],
}


def plan_of(folder: Path, **entries: Any) -> Plan:
    file = folder / "sweep.yaml"
    file.write_text(yaml.safe_dump({**FILE, **entries}, sort_keys=False))
    return read_plan(file)


def train(study: Study, scores: dict[int, float | None]) -> list[dict[str, Any]]:
    """Ends a generation with the score of each member, None for a failure. Returns attributes and parameters."""
    begun = []
    while (trial := study.ask()) is not None:
        begun.append(trial)
    for trial in begun:
        score = scores[trial.user_attrs[MEMBER]]
        if score is None:
            study.fail(trial, "no memory")
        else:
            study.complete(trial, score)
    return [{**each.user_attrs, **each.params, "number": each.number} for each in begun]


def test_generations_follow_each_other_until_all_steps_are_done(tmp_path: Path) -> None:
    plan = plan_of(tmp_path)
    study = Study(plan, tmp_path)
    scores: dict[int, float | None] = {0: 1.0, 1: 2.0, 2: 3.0, 3: 4.0}
    generations = [train(study, scores) for _ in range(4)]

    assert plan.num_trials == 12
    assert [[each[MEMBER] for each in generation] for generation in generations] == [[0, 1, 2, 3]] * 3 + [[]]
    first, second, _, _ = generations
    assert all(PARENT not in each for each in first)
    parents = {each[MEMBER]: each[PARENT] for each in second}
    assert parents == {0: "003-seed13", 1: "001-seed11", 2: "002-seed12", 3: "003-seed13"}
    copied, source = second[0], first[3]
    assert copied["learning_rate"] / source["learning_rate"] == pytest.approx(0.8) or copied[
        "learning_rate"
    ] == pytest.approx(min(1e-2, 1.2 * source["learning_rate"]))
    for member in (1, 2, 3):
        assert {name: second[member][name] for name in FILE["parameters"]} == {
            name: first[member][name] for name in FILE["parameters"]
        }
    best = study.best()
    assert best is not None and best.user_attrs[GENERATION] == 2 and best.user_attrs[MEMBER] == 3


def test_members_that_fail_are_replaced_and_never_copied(tmp_path: Path) -> None:
    study = Study(plan_of(tmp_path), tmp_path)
    first = train(study, {0: None, 1: None, 2: 3.0, 3: 4.0})
    second = train(study, dict.fromkeys(range(4), 1.0))

    assert len(first) == 4
    assert {each[MEMBER]: each[PARENT] for each in second} == {
        **dict.fromkeys((0, 1, 3), "003-seed13"),
        2: "002-seed12",
    }


@pytest.mark.parametrize("num_begun", [0, 2])
def test_a_sweep_that_was_killed_between_two_members_begins_those_that_are_missing(
    tmp_path: Path, num_begun: int
) -> None:
    plan = plan_of(tmp_path)
    study = Study(plan, tmp_path)
    train(study, {0: 1.0, 1: 2.0, 2: 3.0, 3: 4.0})
    assert study.ask() is not None
    expected = {each.user_attrs[MEMBER]: each.system_attrs["fixed_params"] for each in study.trials()[4:]}

    lines = (tmp_path / "trials.journal").read_text().splitlines(keepends=True)
    waiting = [index for index, line in enumerate(lines) if f'"{PARENT}"' in line]
    (tmp_path / "trials.journal").write_text("".join(lines[: waiting[num_begun]]))
    again = Study(plan, tmp_path)
    again.ask()

    assert {each.user_attrs[MEMBER]: each.system_attrs["fixed_params"] for each in again.trials()[4:]} == expected


def test_numbers_are_perturbed_within_their_ranges_and_choices_to_their_neighbors() -> None:
    space = read_space(
        {"a": {"range": [0.0, 1.0]}, "b": {"range": [1, 100]}, "c": {"range": [0, 60], "step": 20}, "d": [1, 2, 3]}
    )
    draw = random.Random(1)
    found = [explored(space, {"a": 0.9, "b": 10, "c": 60, "d": 2}, 0.0, draw) for _ in range(50)]

    assert {round(float(str(each["a"])), 6) for each in found} == {0.72, 1.0}
    assert {each["b"] for each in found} == {8, 12}
    assert {each["c"] for each in found} <= {40, 60}
    assert {each["d"] for each in found} == {1, 3}


def test_parameters_are_drawn_anew_with_a_probability() -> None:
    space = read_space({"a": {"log": [1e-5, 1e-2]}, "b": [1, 2, 3]})
    draw = random.Random(1)
    found = [explored(space, {"a": 1e-3, "b": 1}, 0.25, draw) for _ in range(2000)]
    near = sum(round(float(str(each["a"])), 6) in (0.0008, 0.0012) for each in found)
    far = sum(each["b"] == 3 for each in found)

    assert near == pytest.approx(1500, abs=100)
    assert far == pytest.approx(2000 * 0.25 / 3, abs=50)


@pytest.mark.parametrize(
    ("entries", "reason"),
    [
        ({"population": None}, "population = None: must be a mapping with members, interval"),
        ({"population": {"members": 4}}, "must be a mapping with members, interval"),
        ({"population": {"members": 3, "interval": 5}}, "population.members = 3: must be a whole number, at least 4"),
        ({"population": {"members": 4, "interval": 0}}, "population.interval = 0: must be a whole number"),
        ({"population": {"members": 4, "interval": 5, "quantile": 0.6}}, "quantile = 0.6: must be above 0"),
        ({"population": {"members": 4, "interval": 5, "resample": 2}}, "resample = 2: must be from 0 to 1"),
        ({"search": "tpe", "num_trials": 3}, "population = {'members': 4, 'interval': 100}: is for search: pbt"),
        ({"num_trials": 3}, "num_trials = 3: follows from the population"),
        ({"seeds": [1, 2]}, "seeds = [1, 2]: must be one with search: pbt"),
    ],
)
def test_an_entry_that_does_not_fit_a_population_is_named(tmp_path: Path, entries: dict[str, Any], reason: str) -> None:
    with pytest.raises(ConfigError) as caught:
        plan_of(tmp_path, **entries)

    assert reason in str(caught.value)
