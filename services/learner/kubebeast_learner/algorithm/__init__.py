"""IMPALA: rollouts, V-trace, losses and the update.

`Learner` updates a model by one `Rollout` after the other; `impala_loss` is what it minimises, from the targets of
`vtrace`. A loss of a user's own is a `LossFunction`.
"""

from kubebeast_learner.algorithm import vtrace
from kubebeast_learner.algorithm.learner import DivergedError, Learner, UpdateStats
from kubebeast_learner.algorithm.loss_choice import LossFunction
from kubebeast_learner.algorithm.losses import LossOutput, clip_rewards, impala_loss
from kubebeast_learner.algorithm.replay import ReplayBuffer
from kubebeast_learner.algorithm.rollout import Rollout

__all__ = [
    "DivergedError",
    "Learner",
    "LossFunction",
    "LossOutput",
    "ReplayBuffer",
    "Rollout",
    "UpdateStats",
    "clip_rewards",
    "impala_loss",
    "vtrace",
]
