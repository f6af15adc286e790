"""Distributions over the actions of an environment, with policy_logits as parameters."""

from kubebeast_learner.distributions.action import ActionDistribution
from kubebeast_learner.distributions.categorical import Categorical
from kubebeast_learner.distributions.normal import Normal, SquashedNormal
from kubebeast_learner.distributions.part import Part

__all__ = ["ActionDistribution", "Categorical", "Normal", "Part", "SquashedNormal"]
