"""A loss with a fixed time per update, so that the learner's speed does not depend on the machine's load."""

import time

from torch import Tensor

from kubebeast_learner import LossConfig
from kubebeast_learner.algorithm import LossOutput, Rollout, impala_loss
from kubebeast_learner.models import ModelOutput

STEPS_PER_SECOND = 130.0


def paced_loss(output: ModelOutput, rollout: Rollout, config: LossConfig, entropy_cost: Tensor) -> LossOutput:
    time.sleep(rollout.action.numel() / STEPS_PER_SECOND)
    return impala_loss(output, rollout, config, entropy_cost)
