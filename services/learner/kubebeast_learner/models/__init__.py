"""Actor-critic models. `make_model` builds one; `Model` is their common contract."""

from kubebeast_common.spec.leaves import LeafSpec
from kubebeast_learner.distributions import ActionDistribution
from kubebeast_learner.errors import ModelSpecError
from kubebeast_learner.models.base import Model, ModelInputs, ModelOutput
from kubebeast_learner.models.core import CoreState
from kubebeast_learner.models.factory import describe_inputs, make_model
from kubebeast_learner.models.torsos.base import Encoder
from kubebeast_learner.models.torsos.image import ImageLayout

__all__ = [
    "ActionDistribution",
    "CoreState",
    "Encoder",
    "ImageLayout",
    "LeafSpec",
    "Model",
    "ModelInputs",
    "ModelOutput",
    "ModelSpecError",
    "describe_inputs",
    "make_model",
]
