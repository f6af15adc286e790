"""Results of a sweep as files: a table of its trials, and its best settings for --config of a training."""

import csv
import io
from pathlib import Path
from typing import Any

import yaml
from optuna.trial import FrozenTrial, TrialState

from kubebeast_common.atomic_file import write_atomically
from kubebeast_sweep.active_trial import CPU_S, SCORE
from kubebeast_sweep.plan import Plan
from kubebeast_sweep.population import GENERATION, MEMBER, PARENT
from kubebeast_sweep.space import to_setting
from kubebeast_sweep.trials.study import REASON, Study

TABLE, BEST = "trials.csv", "best.yaml"
STATES = {
    TrialState.COMPLETE: "done",
    TrialState.PRUNED: "pruned",
    TrialState.FAIL: "failed",
    TrialState.RUNNING: "under way",
    TrialState.WAITING: "waiting",
}


def score_of(trial: FrozenTrial) -> float | None:
    """Returns the score of a trial, or the newest one on its way; None if it has none yet."""
    if trial.value is not None:
        return trial.value
    return trial.intermediate_values[max(trial.intermediate_values)] if trial.intermediate_values else None


def cpu_s_of(trial: FrozenTrial) -> float:
    return float(trial.user_attrs.get(CPU_S, 0.0))


def write_results(plan: Plan, study: Study, folder: Path) -> None:
    """Writes TABLE and, if a trial is complete, BEST. Raises OSError."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    seeds = [] if plan.population else [SCORE.format(seed) for seed in plan.seeds]
    places = [MEMBER, GENERATION, PARENT] if plan.population else []
    table.writerow(["trial", "state", "score", *places, *plan.space, *seeds, CPU_S, REASON])
    for trial in study.trials():
        values = [to_setting(trial.params.get(name)) for name in plan.space]
        place = [trial.user_attrs.get(name, "") for name in places]
        attributes = [trial.user_attrs.get(name, "") for name in (*seeds, CPU_S, REASON)]
        table.writerow([trial.number, STATES[trial.state], _text(score_of(trial)), *place, *values, *attributes])
    write_atomically(folder / TABLE, text.getvalue().encode())
    best = study.best()
    if best is not None:
        note = f"# The best of {len(study.trials())} trials of the sweep {folder.name}: {plan.score} {best.value:g}\n"
        content = yaml.safe_dump(best_settings(plan, best), sort_keys=False)
        write_atomically(folder / BEST, (note + content).encode())


def best_settings(plan: Plan, best: FrozenTrial) -> dict[str, Any]:
    """Returns the settings of a trial, as `kubebeast mono --config` takes them."""
    return {**plan.settings, **{name: to_setting(value) for name, value in best.params.items()}}


def _text(score: float | None) -> str:
    return "" if score is None else f"{score:.6g}"
