"""Seeds of environments that must not repeat the episodes of others or of their own earlier processes.

Needs NumPy, which every package that makes environments depends on, and this one does not.
"""

import numpy as np


def derived_seed(*entropy: int) -> int:
    """Returns a seed derived from nonnegative numbers; different numbers give different seeds.

    It is below 2**30, so that seeds counted up from it stay within MAX_SEED.
    """
    return int(np.random.SeedSequence(entropy).generate_state(1)[0] >> 2)
