"""Scores of the played checkpoints of a run: eval.csv in its folder, next to logs.csv."""

from pathlib import Path

from kubebeast_runs.log_table import NO_LOG, LogTable, read_table

NAME = "eval.csv"


def read_scores(folder: Path) -> LogTable:
    """Reads folder/eval.csv, with columns such as mean_return and std_return; empty if there is none."""
    try:
        return read_table(folder / NAME)
    except OSError:
        return NO_LOG
