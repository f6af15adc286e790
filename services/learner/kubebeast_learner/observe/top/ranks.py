"""Several learners that train one model: what each has and does, as any of them tells at GET /ranks."""

from collections.abc import Sequence
from dataclasses import dataclass

from rich.table import Table
from rich.text import Text

from kubebeast_learner.observe.numbers import number_text
from kubebeast_learner.observe.table import draw_table
from kubebeast_learner.observe.top.streams_json import parse_list

MAX_RANKS = 8
"""Of learners that are drawn."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RankRow:
    """One learner; the place in the list is its rank."""

    streams: int
    envs: int
    sps: float
    """Env-steps of its own batches, a second."""
    learner_queue_size: int
    """Unrolls that wait for it."""
    empty_shares: int
    """Updates that it joined without a batch, since its process started."""


def parse_ranks(text: str) -> tuple[RankRow, ...]:
    """The learners of the answer's JSON; none for one that is alone. ValueError names what is wrong with it."""
    return parse_list(text, "ranks", RankRow)


def draw_ranks(rows: Sequence[RankRow], width: int) -> Table:
    """The first MAX_RANKS."""
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
