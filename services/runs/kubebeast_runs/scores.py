"""Scores of the played checkpoints of a run: eval.csv next to logs.csv, eval-<name>.csv of an evaluator with a name."""

import io
from collections.abc import Collection
from pathlib import Path, PurePath
from typing import NamedTuple

from kubebeast_runs.log_table import NO_LOG, LogTable, parse_table, read_rows
from kubebeast_runs.parts import evaluation, evaluators_among
from kubebeast_runs.storage.local import LocalStorage
from kubebeast_runs.storage.storage import Files


class ScoreError(RuntimeError):
    """No score selects a checkpoint; the message gives users the reason, without the setting."""


class PlayedScore(NamedTuple):
    """Unclipped returns of the whole episodes that a checkpoint was played for."""

    env: str
    """Environment that was played; "" if the table does not have it."""
    mean_return: float
    std_return: float
    num_episodes: int


def evaluators_in(files: Files) -> list[str]:
    """Returns the evaluators that have a table among the files, "" for the one without a name. Raises OSError."""
    paths = (PurePath(file.name) for file in files.files())
    return evaluators_among(path.stem for path in paths if path.suffix == ".csv")


def read_scores(files: Files, evaluator: str = "") -> LogTable:
    """Reads the table of an evaluator, with columns such as mean_return and std_return; empty if there is none.

    Raises OSError if it cannot be read.
    """
    name = evaluation(evaluator).first_file
    try:
        raw = files.open(name)
    except FileNotFoundError:
        return NO_LOG
    with raw, io.TextIOWrapper(io.BufferedReader(raw), "utf-8", "replace", newline="") as lines:
        return parse_table(lines, files.place(name))


def score_at(folder: Path, step: int) -> PlayedScore | None:
    """Returns the newest score of the checkpoint with these env-steps, by the evaluator that counts; None if there is
    none, or if it is unclear which evaluator counts.
    """
    try:
        evaluator = choose_evaluator("", evaluators_in(LocalStorage(folder)))
        rows = read_rows(folder / evaluation(evaluator).first_file)
    except (OSError, ScoreError):
        return None
    for row in reversed(rows):
        try:
            if int(float(row["step"])) == step:
                counts = int(float(row["episodes"]))
                return PlayedScore(row.get("env", ""), float(row["mean_return"]), float(row["std_return"]), counts)
        except (KeyError, ValueError, OverflowError):
            continue
    return None


def choose_evaluator(wanted: str, names: Collection[str]) -> str:
    """Returns the evaluator of a run that counts: `wanted` or, if it is "", the one without a name, or the only one.

    Raises ScoreError if there is no such evaluator among `names`, or if it is unclear.
    """
    if wanted in names:
        return wanted
    known = ", ".join(sorted(name or "the one without a name" for name in names)) or "none"
    if wanted:
        raise ScoreError(f"the run has no scores of the evaluator {wanted!r}; evaluators with scores: {known}")
    if len(names) != 1:
        raise ScoreError(f"it is unclear which evaluator counts; evaluators with scores: {known}")
    return next(iter(names))
