"""Seeds of environments that must not play what others, or their own earlier lives, have played."""

import numpy as np


def derived_seed(*entropy: int) -> int:
    """A seed for these numbers, none of them negative; another number gives another seed.

    Below 2**30, so that environments may count up from it and stay within MAX_SEED.
    """
    return int(np.random.SeedSequence(entropy).generate_state(1)[0] >> 2)
