"""A model of a small observation and four actions."""

from kubebeast_common.spec.leaves import Leaf
from kubebeast_learner.config import ModelConfig
from kubebeast_learner.models import Model, make_model

OBSERVATION = Leaf("", "float32", (2,))
ACTION = Leaf("", "int64", (), num_categories=4)


def mlp_model(*, use_lstm: bool = False) -> Model:
    return make_model([OBSERVATION], [ACTION], ModelConfig(model="mlp", hidden_sizes=(8,), use_lstm=use_lstm))
