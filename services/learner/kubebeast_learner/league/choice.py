"""Choice of the opponent of an episode."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kubebeast_learner.league.version import Version


def probabilities(choice: str, versions: Sequence[Version]) -> NDArray[np.float64]:
    """Returns the probability of each version, [N]; they are equal for "uniform".

    "prioritized" is in proportion to (1 - score)^2 (prioritized fictitious self-play, Vinyals et al. 2019,
    https://doi.org/10.1038/s41586-019-1724-z, f_hard with p = 2).
    """
    weights = np.ones(len(versions))
    if choice == "prioritized":
        hard = np.array([1 - version.score for version in versions]) ** 2
        weights = hard if hard.sum() > 0 else weights
    result: NDArray[np.float64] = weights / weights.sum()
    return result
