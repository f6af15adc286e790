"""A loss that is not finite for a while: in the updates "first-last" of the variable NOT_FINITE.

kubebeast learner --loss tests.system.losses:loss
"""

import itertools
import os

from torch import Tensor

from kubebeast_learner.algorithm.losses import LossOutput, impala_loss
from kubebeast_learner.algorithm.rollout import Rollout
from kubebeast_learner.config import LossConfig
from kubebeast_learner.models import ModelOutput

NOT_FINITE = "SYSTEM_NOT_FINITE"

_calls = itertools.count()


def loss(output: ModelOutput, rollout: Rollout, config: LossConfig, entropy_cost: Tensor) -> LossOutput:
    result = impala_loss(output, rollout, config, entropy_cost)
    first, last = map(int, os.environ[NOT_FINITE].split("-"))
    return result._replace(total=result.total * float("nan")) if first <= next(_calls) <= last else result
