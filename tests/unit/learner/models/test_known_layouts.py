"""The name of a library determines the axes of its images."""

import pytest

from kubebeast_learner.config import ModelConfig
from kubebeast_learner.models import make_model
from kubebeast_learner.models.actor_critic import ActorCritic
from kubebeast_learner.models.torsos.known_layouts import with_known_layout
from kubebeast_learner.models.torsos.small import SmallTorso
from tests.unit.learner.algorithm.learning_data import Leaf, discrete

CUBE = Leaf((10, 10, 10), "bool")


@pytest.mark.parametrize("dtype", ["bool", "float32"])
@pytest.mark.parametrize("env_id", ["MinAtar/Seaquest-v1", "MinAtar/Seaquest", "vector/MinAtar/Seaquest-v0"])
def test_channels_of_minatar_are_last(env_id: str, dtype: str) -> None:
    leaf = Leaf((10, 10, 10), dtype)
    model = make_model([leaf], [discrete(6)], with_known_layout(ModelConfig(), env_id, [leaf]))
    assert isinstance(model, ActorCritic) and isinstance(model.torso, SmallTorso)
    assert model.torso.image.axes == "hwc"


@pytest.mark.parametrize(
    ("config", "env_id", "leaf"),
    [
        (ModelConfig(), "Seaquest-v4", CUBE),
        (ModelConfig(image_layout=(".=chw",)), "MinAtar/Seaquest-v1", CUBE),
        (ModelConfig(model="mlp"), "MinAtar/Seaquest-v1", CUBE),
        (ModelConfig(), "MinAtar/Breakout-v1", Leaf((10, 10, 4), "bool")),
        (ModelConfig(), "MinAtar/Seaquest-v1", Leaf((1000,), "bool")),
    ],
)
def test_other_settings_stay_as_they_are(config: ModelConfig, env_id: str, leaf: Leaf) -> None:
    assert with_known_layout(config, env_id, [leaf]) == config
