"""Schedules of the learning rate and of costs, from initial to final value within `schedule_steps` env-steps."""

import math

from kubebeast_learner.config import LossConfig, OptimizerConfig
from kubebeast_learner.config.learning import Schedule


def anneal(schedule: Schedule, initial: float, final: float, progress: float) -> float:
    """Returns the value after a share `progress` of the run; progress is clipped to [0, 1].

    linear is TorchBeast's schedule of the learning rate, cosine equation (5) of Loshchilov & Hutter 2016,
    arXiv:1608.03983. constant stays at `initial`.
    """
    progress = min(1.0, max(0.0, progress))
    if schedule == "constant":
        return initial
    remaining = 1.0 - progress if schedule == "linear" else 0.5 * (1.0 + math.cos(math.pi * progress))
    return final + (initial - final) * remaining


def learning_rate_at(step: int, schedule_steps: int, config: OptimizerConfig) -> float:
    """Returns the learning rate of an update after `step` env-steps, including the warm-up."""
    progress = step / schedule_steps
    rate = anneal(config.learning_rate_schedule, config.learning_rate, config.learning_rate_final, progress)
    return rate * min(1.0, step / config.learning_rate_warmup_steps) if config.learning_rate_warmup_steps else rate


def entropy_cost_at(step: int, schedule_steps: int, config: LossConfig) -> float:
    """Returns the weight of the entropy bonus in an update after `step` env-steps."""
    return anneal(config.entropy_schedule, config.entropy_cost, config.entropy_cost_final, step / schedule_steps)
