"""Base of the curricula that choose from a list of levels, by the results of each."""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kubebeast_common.spec.episode_options import to_text
from kubebeast_learner.curriculum.base import Level

RECENT = 0.2
"""Weight of the newest episode in the mean return of its level that is logged."""

LEVELS_PER_RESULT = 32
"""Levels for each result or draw that may be missing in the probabilities: of many levels, one changes little, and
computing them takes much longer than a draw."""

Floats = NDArray[np.float64]


class ListedLevels(ABC):
    """A choice from N levels with probabilities, which are computed anew after the episodes of the levels: after each
    one, or of many levels after N / LEVELS_PER_RESULT.
    """

    def __init__(self, levels: Sequence[Level], seed: int) -> None:
        self._levels = levels
        self._texts = [to_text(level) for level in levels]
        self._indices = {text: index for index, text in enumerate(self._texts)}
        self._num_alike = max(1, len(levels) // LEVELS_PER_RESULT)
        """Results, and draws, after which the probabilities are out of date."""
        self._generator = np.random.default_rng(seed)
        self._counts = np.zeros(len(levels), np.int64)
        """int64 [N]: finished episodes."""
        self._means = np.zeros(len(levels))
        """float64 [N]: moving mean of the returns of each level."""
        self._num_results = 0
        self._cumulative: Floats | None = None
        """float64 [N]: sums of `_chances`; None if they are out of date."""

    @abstractmethod
    def probabilities(self) -> Floats:
        """Returns float64 [N], the probabilities of the next draw."""

    def next_level(self) -> Level:
        (index,) = self._draw(1)
        return self._levels[index]

    def next_texts(self, count: int) -> list[str]:
        """Returns the texts of the next `count` levels; faster than one after the other."""
        texts: list[str] = []
        while len(texts) < count:
            texts += [self._texts[index] for index in self._draw(min(count - len(texts), self._num_alike))]
        return texts

    def _draw(self, count: int) -> list[int]:
        """Draws `count` levels with the same probabilities."""
        found = self._at(self._generator.random(count))
        self._note_draws(found)
        indices: list[int] = found.tolist()
        return indices

    def _at(self, shares: Floats) -> NDArray[np.int64]:
        """Returns the levels at `shares`, each from 0 to below 1, of the sum of `_chances`."""
        if self._cumulative is None:
            self._cumulative = np.cumsum(self._chances())
        found = np.searchsorted(self._cumulative, shares * self._cumulative[-1], side="right")
        result: NDArray[np.int64] = np.minimum(found, len(self._levels) - 1)
        return result

    def _chances(self) -> Floats:
        """Returns float64 [N], the probabilities that hold for several draws."""
        return self.probabilities()

    def on_episode(self, level: Level, episode_return: float, length: int, info: Mapping[str, float]) -> None:
        self.note_return(to_text(level), episode_return)

    def note_return(self, text: str, episode_return: float) -> None:
        """Records a finished episode of the level with that text; faster than `on_episode`."""
        index = self._indices.get(text)
        if index is None:  # of a list before the resume
            return
        weight = RECENT if self._counts[index] else 1.0
        self._means[index] += weight * (episode_return - self._means[index])
        self._note_result(index, episode_return)
        self._counts[index] += 1
        self._num_results += 1
        if self._num_results % self._num_alike == 0:
            self._cumulative = None

    def numbers(self) -> Mapping[str, float]:
        """Returns the share of levels with an episode, the mean over these of their mean returns, and the number of
        equally likely levels that would have the entropy of the probabilities.
        """
        played = self._counts > 0
        chances = self.probabilities()
        chances = chances[chances > 0] / chances.sum()
        return {
            "played_share": float(played.mean()),
            "mean_return": float(self._means[played].mean()) if played.any() else math.nan,
            "effective_levels": float(np.exp(-(chances * np.log(chances)).sum())),
        }

    def state_dict(self) -> Mapping[str, Any]:
        columns = self._columns()
        return {
            text: [column[index].item() for column in columns]
            for text, index in self._indices.items()
            if self._counts[index]
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        columns = self._columns()
        for text, values in state.items():
            if (index := self._indices.get(text)) is not None:
                for column, value in zip(columns, values, strict=True):
                    column[index] = value
        self._cumulative = None

    def _columns(self) -> Sequence[NDArray[Any]]:
        """Returns the arrays [N] that make up the state."""
        return self._counts, self._means

    def _note_draws(self, indices: NDArray[np.int64]) -> None:  # noqa: B027 - not every curriculum records draws
        """Records that levels were drawn, in this order."""

    def _note_result(self, index: int, episode_return: float) -> None:  # noqa: B027 - nor results beyond the mean
        """Records a finished episode, before it is counted."""


def one_of(levels: NDArray[np.bool_]) -> Floats:
    """Returns equal probabilities for the marked levels, bool [N], at least one."""
    result: Floats = levels / levels.sum()
    return result
