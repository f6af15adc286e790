"""Uniform choice of levels."""

import numpy as np

from kubebeast_learner.curriculum.listed import Floats, ListedLevels


class Uniform(ListedLevels):
    """All levels, with equal probabilities."""

    def probabilities(self) -> Floats:
        return np.full(len(self._levels), 1 / len(self._levels))
