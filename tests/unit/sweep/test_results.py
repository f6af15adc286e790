"""Pictures and numbers of a sweep show the scores and steps that its trials had."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from matplotlib.figure import Figure

from kubebeast_sweep.active_trial import STEPS
from kubebeast_sweep.plan import Plan, read_plan
from kubebeast_sweep.population import GENERATION, MEMBER
from kubebeast_sweep.results import picture, schedules
from kubebeast_sweep.results.table import Pace
from kubebeast_sweep.trials.study import Study


def plan_of(folder: Path, **entries: Any) -> Plan:
    file = folder / "sweep.yaml"
    content = {"settings": {"env": "X", "total_steps": 1000}, "parameters": {"rate": [0.1, 0.2, 0.3]}, **entries}
    file.write_text(yaml.safe_dump(content))
    return read_plan(file)


def test_the_best_line_ends_at_the_top_of_the_axis_also_if_the_best_score_is_0(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, num_trials=3, search="grid")
    study = Study(plan, tmp_path)
    for score in (-1.0, -0.5, 0.0):
        trial = study.ask()
        assert trial is not None
        study.complete(trial, score)
    axes = Figure().subplots()
    picture._draw_parallel(axes, plan, study.trials())

    (lines,) = axes.collections
    assert [np.asarray(path.vertices)[-1, 1] for path in lines.get_paths()] == pytest.approx([0.0, 0.5, 1.0])


def test_choices_without_an_order_have_places_of_their_own_in_the_picture_of_a_population(tmp_path: Path) -> None:
    population = {"search": "pbt", "population": {"members": 4, "interval": 1000}}
    plan = plan_of(tmp_path, parameters={"clipping": [None, 40.0], "size": [4, 16]}, **population)
    study = Study(plan, tmp_path)
    while (trial := study.ask()) is not None:
        study.complete(trial, float(trial.user_attrs[MEMBER]))

    trials = study.trials()
    places = {each.params["clipping"]: schedules._value(plan, each, "clipping") for each in trials}
    assert places.items() <= {None: 0, 40.0: 1}.items()
    assert {schedules._value(plan, each, "size") for each in trials} <= {4.0, 16.0}
    assert all(each.user_attrs[GENERATION] == 0 for each in trials)
    assert schedules.draw_schedules(plan, study, tmp_path / "sweep.png", "")


def test_steps_of_a_trial_that_failed_still_count(tmp_path: Path) -> None:
    study = Study(plan := plan_of(tmp_path, num_trials=2), tmp_path)
    pace = Pace(plan, study)
    trial = study.ask()
    assert trial is not None
    assert pace.numbers(0).steps_per_s == 0.0
    assert pace.numbers(600).steps_per_s > 0.0
    trial.set_user_attr(STEPS, 600)
    study.fail(trial, "no memory")

    assert pace.numbers(0).steps_per_s > 0.0
