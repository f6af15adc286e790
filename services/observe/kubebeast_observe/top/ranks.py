"""State of several learners that train one model, as each of them serves it at GET /ranks."""

from collections.abc import Sequence
from dataclasses import dataclass

from rich.table import Table
from rich.text import Text

from kubebeast_observe.numbers import number_text
from kubebeast_observe.table import draw_table
from kubebeast_observe.top.streams_json import parse_list
from kubebeast_observe.top.verdict import EMPTY_SHARES

MAX_RANKS = 8
"""Maximum number of learners that are drawn."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RankRow:
    """One learner; its index in the list is its rank."""

    streams: int
    envs: int
    sps: float
    """Env-steps per second of its own batches."""
    learner_queue_size: int
    """Unrolls in its queue."""
    empty_shares: int
    """Updates that it joined without a batch, since its process started."""


def parse_ranks(text: str) -> tuple[RankRow, ...]:
    """Parses the learners of a /ranks page; empty for a single learner. Raises ValueError for malformed pages."""
    return parse_list(text, "ranks", RankRow)


def starved_ranks(before: Sequence[RankRow], now: Sequence[RankRow], num_updates: float | None) -> list[int]:
    """Returns the ranks that contribute almost nothing to the training while others train.

    They have no stream, or joined most of the updates without a batch. num_updates: updates between the looks, None if
    unknown.
    """
    starved = []
    for rank, row in enumerate(now):
        num_empty = row.empty_shares - before[rank].empty_shares if len(before) == len(now) else 0
        if row.streams == 0 or (num_updates and num_empty > EMPTY_SHARES * num_updates):
            starved.append(rank)
    return starved if len(starved) < len(now) else []


def draw_ranks(rows: Sequence[RankRow], width: int) -> Table:
    """Draws the first MAX_RANKS learners."""
    lines = [
        {
            "rank": Text(str(rank)),
            "streams": Text(number_text(row.streams)),
            "environments": Text(number_text(row.envs)),
            "steps/s": Text(number_text(row.sps)),
            "rollouts queued": Text(number_text(row.learner_queue_size)),
            "empty shares": Text(number_text(row.empty_shares), style="yellow" if row.empty_shares else ""),
        }
        for rank, row in enumerate(rows[:MAX_RANKS])
    ]
    return draw_table(list(lines[0]), (), lines, width, fold=False)
