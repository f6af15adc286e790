"""Prioritized level replay by learning progress: levels with returns that change."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kubebeast_learner.curriculum.base import Level
from kubebeast_learner.curriculum.listed import LEVELS_PER_RESULT, Floats, ListedLevels, one_of
from kubebeast_learner.curriculum.new_levels import NewLevels


class Progress(ListedLevels):
    """Prioritized level replay (Jiang et al. 2021, https://arxiv.org/abs/2010.03934) with progress as the score.

    A draw replays a level with the probability seen / N, with the number of levels that have a result; else it is a
    new level. Replayed levels have the probabilities (1 - rho) P_S + rho P_C, with P_S by the rank of their scores
    and P_C by their staleness (section 3). The score is not the paper's error of the value function, as the
    learner knows returns by level and not errors: it is the absolute difference of a fast and a slow moving mean of the
    returns, the bidirectional learning progress of Kanitscheider et al. 2021, https://arxiv.org/abs/2106.14876.
    """

    def __init__(
        self,
        levels: Sequence[Level],
        seed: int,
        *,
        temperature: float = 0.3,
        staleness: float = 0.1,
        fast: float = 0.3,
        slow: float = 0.05,
        least: float = 0.05,
    ) -> None:
        """Creates a curriculum.

        Args:
            levels: N levels.
            seed: Seed of the draws.
            temperature: beta of P_S; the lower, the more often the first ranks are drawn.
            staleness: rho, the share of P_C.
            fast: Weight of a new return in the fast mean.
            slow: Weight of a new return in the slow mean.
            least: Progress below this share of the range of all means counts as none.

        Raises:
            ValueError: An argument is out of its range.
        """
        if temperature <= 0:
            raise ValueError(f"temperature = {temperature}: must be above 0")
        if not 0 <= staleness <= 1:
            raise ValueError(f"staleness = {staleness}: must be from 0 to 1")
        if not 0 < slow < fast <= 1:
            raise ValueError(f"slow = {slow}, fast = {fast}: must be 0 < slow < fast <= 1")
        if not 0 <= least < 1:
            raise ValueError(f"least = {least}: must be from 0 to below 1")
        super().__init__(levels, seed)
        self._least = least
        self._temperature, self._staleness = temperature, staleness
        self._weights = fast, slow
        self._fast, self._slow = np.zeros(len(levels)), np.zeros(len(levels))
        """float64 [N]: moving means of the returns."""
        self._drawn_at = np.zeros(len(levels), np.int64)
        """int64 [N]: number of the newest draw of each level, from 1; 0 if there was none."""
        self._num_draws = 0
        self._new = NewLevels(range(len(levels)), len(levels))
        self._by_rank: Floats | None = None
        """P_S; None if it is out of date."""

    def probabilities(self) -> Floats:
        is_seen = self._counts > 0
        is_ready = ~is_seen & ((self._drawn_at == 0) | (self._num_draws + 1 - self._drawn_at >= len(is_seen)))
        if not is_ready.any():
            return self._chances()
        seen, fresh = is_seen.mean(), one_of(is_ready)
        result: Floats = (1 - seen) * fresh + seen * self._chances() if seen else fresh
        return result

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        super().load_state_dict(state)
        is_new = self._counts == 0
        self._drawn_at[is_new] = 0
        self._num_draws, self._by_rank = int(self._drawn_at.max()), None
        self._new = NewLevels(np.flatnonzero(is_new).tolist(), len(is_new))

    def _draw(self, count: int) -> list[int]:
        return [self._draw_one() for _ in range(count)] if self._new else super()._draw(count)

    def _draw_one(self) -> int:
        share, draw = float(self._generator.random()), self._num_draws + 1
        seen = 1 - len(self._new) / len(self._levels) if self._new.num_ready(draw) else 1.0
        if share < seen:
            (level,) = self._at(np.array([share / seen])).tolist()
        else:
            level = self._new.take((share - seen) / (1 - seen), draw)
        self._note_draws(np.array([level]))
        return int(level)

    def _chances(self) -> Floats:
        """Returns the probabilities of a replay."""
        is_seen = self._counts > 0
        if self._by_rank is None:
            self._by_rank = self._by_score(is_seen)
        return (1 - self._staleness) * self._by_rank + self._staleness * self._by_staleness(is_seen)

    def _by_score(self, is_seen: NDArray[np.bool_]) -> Floats:
        """Returns P_S: (1 / rank) ** (1 / beta), normalized; equal scores share the chances of their ranks."""
        fast, slow = self._fast[is_seen], self._slow[is_seen]
        scores = np.abs(fast - slow)
        # Without this, a level that is solved for good stays first by the last digits of its means.
        scores[scores <= self._least * np.ptp(np.concatenate([fast, slow]))] = 0.0
        chances = np.arange(1, len(scores) + 1) ** (-1 / self._temperature)
        _, places, sizes = np.unique(-scores, return_inverse=True, return_counts=True)
        means = np.add.reduceat(chances, np.cumsum(sizes) - sizes) / sizes
        result = np.zeros(len(is_seen))
        result[is_seen] = means[places] / chances.sum()
        return result

    def _by_staleness(self, is_seen: NDArray[np.bool_]) -> Floats:
        """Returns P_C: in proportion to the number of draws since that of the level."""
        ages = np.where(is_seen, self._num_draws - self._drawn_at, 0)
        return ages / ages.sum() if ages.sum() else one_of(is_seen)

    def _note_draws(self, indices: NDArray[np.int64]) -> None:
        before, self._num_draws = self._num_draws, self._num_draws + len(indices)
        self._drawn_at[indices] = np.arange(before + 1, self._num_draws + 1)
        if before // self._num_alike < self._num_draws // self._num_alike:
            self._cumulative = None

    def _note_result(self, index: int, episode_return: float) -> None:
        for means, weight in zip((self._fast, self._slow), self._weights, strict=True):
            means[index] += (weight if self._counts[index] else 1.0) * (episode_return - means[index])
        self._by_rank = None
        if not self._counts[index]:
            self._new.note_result(index)
            num_seen = len(self._levels) - len(self._new)
            if num_seen % max(1, num_seen // LEVELS_PER_RESULT) == 0:
                self._cumulative = None

    def _columns(self) -> Sequence[NDArray[Any]]:
        return *super()._columns(), self._fast, self._slow, self._drawn_at
