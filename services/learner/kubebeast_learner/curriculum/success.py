"""Choice of levels by their success rate: those that are solved now and then, neither always nor never."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kubebeast_learner.curriculum.base import Level
from kubebeast_learner.curriculum.listed import Floats, ListedLevels


class Success(ListedLevels):
    """Levels in proportion to their learnability p (1 - p), with the success rate p.

    Rutherford et al. 2024, https://arxiv.org/abs/2408.15099. There p comes from separate episodes, and the most
    learnable levels are drawn with equal probabilities. Here p comes from the episodes of the training, in a moving
    window, so that no steps are spent on measurements alone. A level without an episode counts as one with p = 1/2.
    """

    def __init__(
        self,
        levels: Sequence[Level],
        seed: int,
        *,
        success_return: float = 0.0,
        window: float = 20.0,
        uniform_share: float = 0.1,
    ) -> None:
        """Creates a curriculum.

        Args:
            levels: N levels.
            seed: Seed of the draws.
            success_return: An episode is a success if its return is above this.
            window: Number of episodes over which p is the rate; older ones fade.
            uniform_share: Share of the draws that choose all levels with equal probabilities.

        Raises:
            ValueError: An argument is out of its range.
        """
        if window < 1:
            raise ValueError(f"window = {window}: must be at least 1")
        if not 0 <= uniform_share <= 1:
            raise ValueError(f"uniform_share = {uniform_share}: must be from 0 to 1")
        super().__init__(levels, seed)
        self._success_return, self._fade, self._uniform_share = success_return, 1 - 1 / window, uniform_share
        self._tries = np.zeros(len(levels))
        """float64 [N]: episodes, of which older ones have faded."""
        self._successes = np.zeros(len(levels))
        """float64 [N]: those of them that were successes."""

    def probabilities(self) -> Floats:
        rate = np.divide(self._successes, self._tries, out=np.full(len(self._tries), 0.5), where=self._tries > 0)
        learnability = rate * (1 - rate)
        everywhere = np.full(len(rate), 1 / len(rate))
        if not learnability.any():
            return everywhere
        chosen = learnability / learnability.sum()
        result: Floats = (1 - self._uniform_share) * chosen + self._uniform_share * everywhere
        return result

    def _note_result(self, index: int, episode_return: float) -> None:
        self._tries[index] = self._tries[index] * self._fade + 1
        self._successes[index] = self._successes[index] * self._fade + (episode_return > self._success_return)

    def _columns(self) -> Sequence[NDArray[Any]]:
        return *super()._columns(), self._tries, self._successes
