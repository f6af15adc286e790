"""V-trace by its definition, one unroll at a time, in float64: slow, plain, and written from the paper alone.

Equation (1) of Espeholt et al. 2018, https://arxiv.org/abs/1802.01561, as a double sum instead of a recursion:

    v_s = V(x_s) + sum_{t=s}^{T-1} (prod_{i=s}^{t-1} gamma_i c_i) delta_t V
    delta_t V = rho_t (r_t + gamma_t V(x_{t+1}) - V(x_t))

with c_i = lambda min(c bar, pi/mu), which is Remark 2. A transition that is not valid has rho = c = 0 and is left out
of every sum.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass
class Reference:
    vs: Array
    pg_advantages: Array


def vtrace(
    log_rhos: Array,
    discounts: Array,
    rewards: Array,
    values: Array,
    bootstrap_value: Array,
    clip_rho_threshold: float | None,
    clip_pg_rho_threshold: float | None,
    clip_c_threshold: float | None,
    lambda_: float,
    valid: NDArray[np.bool_],
) -> Reference:
    """All [T, B], bootstrap_value [B]."""
    T, B = log_rhos.shape
    vs = np.zeros((T + 1, B))
    pg_advantages = np.zeros((T, B))
    rho_bar, pg_rho_bar, c_bar = (
        math.inf if threshold is None else threshold
        for threshold in (clip_rho_threshold, clip_pg_rho_threshold, clip_c_threshold)
    )
    for b in range(B):
        V = [*values[:, b], bootstrap_value[b]]
        is_weight = [math.exp(log_rhos[t, b]) if valid[t, b] else 0.0 for t in range(T)]
        for s in range(T + 1):
            vs[s, b] = V[s]
            trace = 1.0
            for t in range(s, T):
                if not valid[t, b]:
                    break
                delta = min(rho_bar, is_weight[t]) * (rewards[t, b] + discounts[t, b] * V[t + 1] - V[t])
                vs[s, b] += trace * delta
                trace *= discounts[t, b] * lambda_ * min(c_bar, is_weight[t])
        for t in range(T):
            if valid[t, b]:
                target = rewards[t, b] + discounts[t, b] * vs[t + 1, b]
                pg_advantages[t, b] = min(pg_rho_bar, is_weight[t]) * (target - V[t])
    return Reference(vs[:T], pg_advantages)
