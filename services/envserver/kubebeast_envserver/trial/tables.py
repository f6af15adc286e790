"""Result of a trial as text: the leaves, the facts, and every violation with its count."""

import math
from collections.abc import Iterator, Sequence

import numpy as np

from kubebeast_common.spec.leaves import Leaf
from kubebeast_envserver.rows.limits import bytes_of_row
from kubebeast_envserver.trial.trial import Trial

COLUMNS = ("leaf", "dtype", "shape", "frames", "values", "bytes")


def describe_trial(trial: Trial, max_message_mib: int, model: str = "") -> Iterator[str]:
    """Yields lines. model: description of the model that the environment gets; empty if none was tried."""
    if trial.observation:
        yield from _table([COLUMNS, *_rows("observation", trial.observation), *_rows("action", trial.action)])
        yield from _facts(trial, max_message_mib)
        if model:
            yield f"model: {model}"
    for note in trial.notes:
        yield f"note: {note}"
    for violation in trial.violations:
        times = f"{violation.count:,} times, first after {violation.after_steps:,} steps: "
        yield f"violation: {times * (violation.count > 1)}{violation.text}"
    yield f"{len(trial.violations) or 'no'} violation{'s' * (len(trial.violations) != 1)}"


def _rows(kind: str, leaves: Sequence[Leaf]) -> Iterator[tuple[str, ...]]:
    for leaf in leaves:
        name = f"{kind}.{leaf.path}".rstrip(".")
        num_bytes = math.prod(leaf.shape) * np.dtype(leaf.dtype).itemsize
        yield name, leaf.dtype, str(list(leaf.shape)), str(leaf.frame_stack), _values(leaf), f"{num_bytes:,}"


def _table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def _values(leaf: Leaf) -> str:
    if leaf.num_categories:
        return f"{leaf.num_categories:,} categories"
    if leaf.is_action_mask:
        return "action mask"
    return "-1 to 1" if leaf.bounded else "numbers"


def _facts(trial: Trial, max_message_mib: int) -> Iterator[str]:
    agents = f" of {trial.num_agents} agents" * (trial.num_agents > 1)
    yield f"{trial.steps:,} random steps{agents}, {trial.steps_per_s:,.0f} a second in one process"
    if trial.given_up:
        yield "given up: it failed too often to go on"
    yield _episodes(trial)
    if trial.steps:
        plain, compressed = trial.bytes_per_step, trial.compressed_bytes_per_step
        yield f"sent: {plain:,.0f} bytes a step, {compressed:,.0f} if the learner takes them compressed"
    rows = bytes_of_row(trial.observation, trial.action)
    if rows > 1 << 20:
        yield (
            f"a message of {max_message_mib} MiB (max_message_mib) has room for {(max_message_mib << 20) // rows:,} "
            "environments: a stream can have no more"
        )


def _episodes(trial: Trial) -> str:
    if not trial.episodes:
        return "no episode ended: more --steps, or a --time-limit if none ever does"
    lengths = [episode.length for episode in trial.episodes]
    terminated = sum(episode.terminated for episode in trial.episodes)
    mean_return = float(np.mean([episode.episode_return for episode in trial.episodes]))
    return (
        f"{len(lengths):,} episode{'s' * (len(lengths) > 1)} of {min(lengths):,} to {max(lengths):,} steps, "
        f"mean {np.mean(lengths):,.1f}; {terminated:,} terminated, {len(lengths) - terminated:,} truncated; "
        f"mean return {mean_return:,.2f}"
    )
