"""A custom loss: IMPALA's with an additional term, trained from this folder with

kubebeast mono --env CartPole-v1 --loss my_loss:my_loss
"""

from torch import Tensor

from kubebeast_learner import LossConfig
from kubebeast_learner.algorithm import LossOutput, LossPart, Rollout, impala_loss
from kubebeast_learner.models import ModelOutput


def my_loss(
    output: ModelOutput, rollout: Rollout, config: LossConfig, entropy_cost: Tensor, *, logit_cost: float = 1e-4
) -> LossOutput:
    """Adds the squared logits of the valid transitions to IMPALA's loss, so that no action's probability vanishes."""
    loss = impala_loss(output, rollout, config, entropy_cost)
    policy_logits = output.policy_logits[:-1].masked_fill(~rollout.valid.unsqueeze(-1), 0.0)
    penalty = logit_cost * policy_logits.square().sum()
    return loss._replace(total=loss.total + penalty, parts={**loss.parts, "logit_penalty": LossPart(penalty.detach())})
