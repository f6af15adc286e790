"""IMPALA: rollouts, V-trace, losses and the update.

`Learner` updates a model with one `Rollout` after the other. It minimizes `impala_loss`, which uses the targets of
`vtrace`, or a user's `LossFunction`.
"""

from kubebeast_learner.algorithm import vtrace
from kubebeast_learner.algorithm.learner import Learner, UpdateStats
from kubebeast_learner.algorithm.loss_choice import LossFunction
from kubebeast_learner.algorithm.losses import LossOutput, LossPart, clip_rewards, impala_loss
from kubebeast_learner.algorithm.options.replay import ReplayBuffer
from kubebeast_learner.algorithm.rollout import Rollout
from kubebeast_learner.algorithm.skipped import DivergedError

__all__ = [
    "DivergedError",
    "Learner",
    "LossFunction",
    "LossOutput",
    "LossPart",
    "ReplayBuffer",
    "Rollout",
    "UpdateStats",
    "clip_rewards",
    "impala_loss",
    "vtrace",
]
