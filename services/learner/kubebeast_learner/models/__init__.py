"""Actor-critic models. `make_model` builds one; `Model` is their common contract."""

from kubebeast_learner.models.base import LeafSpec, Model, ModelInputs, ModelOutput, ModelSpecError
from kubebeast_learner.models.core import CoreState
from kubebeast_learner.models.factory import describe_inputs, make_model

__all__ = [
    "CoreState",
    "LeafSpec",
    "Model",
    "ModelInputs",
    "ModelOutput",
    "ModelSpecError",
    "describe_inputs",
    "make_model",
]
