"""Rows of opponents in inference batches, which the models of their versions answer."""

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from kubebeast_learner.actors.batch_rows import Array
from kubebeast_learner.actors.runner import Answer
from kubebeast_learner.league.league import NEWEST, League
from kubebeast_learner.league.version import Version

if TYPE_CHECKING:
    from kubebeast_native import InferenceBatch


class Opponents:
    """The opponent of each slot in its running episode. Workers share it: a slot is in one batch at a time."""

    def __init__(self, league: League, max_envs: int) -> None:
        self._league = league
        self._playing: list[Version | None] = [None] * max_envs

    def split(self, batch: "InferenceBatch") -> dict[Version | None, Array]:
        """Returns the rows of each policy, int64 [n] in order; None is the newest one.

        A first row of an opponent chooses the policy of its episode.
        """
        rows: dict[Version | None, list[int]] = {}
        for row, (is_opponent, slot, is_first) in enumerate(
            zip(batch.opponent.tolist(), batch.slots.tolist(), batch.is_first.tolist(), strict=True)
        ):
            if is_opponent and is_first:
                self._playing[slot] = self._league.choose()
            rows.setdefault(self._playing[slot] if is_opponent else None, []).append(row)
        return {version: np.array(places, np.int64) for version, places in rows.items()}


def joined(answers: dict[Version | None, Answer], rows: dict[Version | None, Array], num_rows: int) -> Answer:
    """Returns the answer to a batch from those to its parts; core_state is that of the rows that begin unrolls, which
    are all of the newest policy.
    """

    def join(name: str) -> Tensor:
        parts = {version: getattr(answer, name) for version, answer in answers.items()}
        first = next(iter(parts.values()))
        whole = torch.empty((num_rows, *first.shape[1:]), dtype=first.dtype)
        for version, part in parts.items():
            whole[torch.from_numpy(rows[version])] = part
        return whole

    any_state = next(iter(answers.values())).core_state
    core_state = answers[None].core_state if None in answers else any_state
    return Answer(join("action"), join("record"), join("baseline"), core_state)


def numbers_of(rows: dict[Version | None, Array], num_rows: int) -> Array:
    """Returns the number of the version that plays each row, int64 [N]; NEWEST for the newest policy."""
    numbers = np.full(num_rows, NEWEST, np.int64)
    for version, places in rows.items():
        if version is not None:
            numbers[places] = version.number
    return numbers
