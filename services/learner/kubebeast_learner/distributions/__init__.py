"""Policies as distributions over actions: what policy_logits mean for the action space of an environment."""

from kubebeast_learner.distributions.action import ActionDistribution
from kubebeast_learner.distributions.categorical import Categorical
from kubebeast_learner.distributions.normal import Normal, SquashedNormal
from kubebeast_learner.distributions.part import Part

__all__ = ["ActionDistribution", "Categorical", "Normal", "Part", "SquashedNormal"]
