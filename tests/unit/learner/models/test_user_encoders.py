"""Users' encoders of single leaves take part in a model, and every mistake is explained."""

import json
import sys
from pathlib import Path

import pytest
import torch

from kubebeast_learner.algorithm.learner import Learner
from kubebeast_learner.config import ConfigError, LossConfig, ModelConfig, OptimizerConfig
from kubebeast_learner.models import Model, describe_inputs, make_model
from kubebeast_learner.models.actor_critic import ActorCritic
from kubebeast_learner.models.torsos.leaves import LeavesTorso
from kubebeast_learner.models.torsos.own import OwnEncoder
from kubebeast_learner.models.torsos.shallow import ShallowTorso
from tests.unit.learner.algorithm.learning_data import FRAMES, VECTOR, Leaf, discrete, random_rollout
from tests.unit.learner.models.user_encoders import SIZE

A = 3
EXAMPLES = Path(__file__).parents[4] / "examples"
MODULE = "tests.unit.learner.models.user_encoders"


def make(name: str, observation: list[Leaf] | None = None, leaf: str = "position", **settings: object) -> Model:
    config = ModelConfig(encoder=(f"{leaf}={MODULE}:{name}",), **settings)  # type: ignore[arg-type]
    return make_model(observation or [VECTOR], [discrete(A)], config)


@pytest.mark.parametrize("leaf", ["position", "."])
def test_the_only_leaf_goes_through_the_encoder_to_core_and_heads(leaf: str) -> None:
    model = make("Good", leaf=leaf)
    assert isinstance(model, ActorCritic)
    assert isinstance(model.torso, OwnEncoder)
    assert model.policy.in_features == SIZE
    assert describe_inputs(model, [VECTOR]) == '"position" (float32 [5]) as Good takes it'
    assert model.low_precision_part is None


def test_other_leaves_keep_their_encoders() -> None:
    model = make("Good", [FRAMES, VECTOR], use_lstm=True)
    assert isinstance(model, ActorCritic)
    assert isinstance(model.torso, LeavesTorso)
    assert [type(encoder) for encoder in model.torso.encoders] == [ShallowTorso, OwnEncoder]
    assert model.torso.join.in_features == 512 + SIZE


def test_an_encoder_may_take_an_image_that_nothing_else_can_take() -> None:
    eyes = Leaf((2, 4, 9, 9, 3), "float32", "eyes")
    model = make("Good", [eyes, VECTOR], model="mlp")
    assert describe_inputs(model, [eyes, VECTOR]).endswith('"position" (float32 [5]) as Good takes it')


def test_options_of_an_encoder_are_those_of_its_leaf() -> None:
    options = json.dumps({"position": {"output_size": 9, "gain": 0.5}})
    model = make("Good", encoder_options=options)
    assert model.state_dict()["torso.net.layer.bias"].tolist() == [0.5] * 9


def test_initial_weights_are_the_authors() -> None:
    model = make("Good", [FRAMES, VECTOR], initialisation="orthogonal")
    weights = model.state_dict()
    assert torch.equal(weights["torso.encoders.1.net.layer.bias"], torch.ones(SIZE))
    assert not weights["torso.encoders.0.fc.bias"].any()


@pytest.mark.parametrize("name", ["Good", "Fixed", "Dropping"])
def test_an_encoder_that_keeps_the_contract_trains(name: str) -> None:
    model = make(name)
    assert all(module.training for module in model.modules())
    stats = Learner(model, OptimizerConfig(), LossConfig(), schedule_steps=1).update(random_rollout(), 0)
    assert not stats.skipped


def test_the_check_draws_nothing_from_the_seed() -> None:
    drawn = []
    for _ in range(2):
        torch.manual_seed(5)
        drawn.append((make("Good").state_dict(), torch.rand(3)))
    torch.testing.assert_close(drawn[0], drawn[1], rtol=0, atol=0)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("WrongConstructor", r'WrongConstructor\(leaf\) of "position" .*: TypeError: .*positional argument'),
        (
            "WrongLayerSize",
            r"forward of float32 \[3, 2, 5\] failed: RuntimeError: .*\(user_encoders.py, line \d+\)",
        ),
        ("NoSize", "NoSize.output_size must be the number of its features, it is None"),
        ("WrongSize", r"must return float32 \[3, 2, 7\], it returned float32 \[3, 2, 6\]"),
        ("Flattened", r"must return float32 \[3, 2, 6\], it returned float32 \[6, 6\]"),
        ("Double", r"must return float32 \[3, 2, 6\], it returned float64"),
        ("Pair", r"must return float32 \[3, 2, 6\], it returned tuple"),
        ("Infinite", "the features must be finite"),
        ("Mixing", "a row in a batch has other features than alone, .* no row may see another"),
        ("Detached", "no gradient reaches a parameter"),
        ("InfiniteGradient", "the gradient of the features is not finite"),
        ("HoldsAGenerator", "cannot be copied for the actors: TypeError"),
        ("NOT_A_CLASS", "must be a subclass of torch.nn.Module, it is 3"),
    ],
)
def test_every_breach_of_the_contract_is_explained(name: str, message: str) -> None:
    with pytest.raises(ConfigError, match=rf"^encoder = 'position={MODULE}:{name}': .*{message}"):
        make(name)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"encoder": ("eye=m:C",)}, "encoder = 'eye': there is no such leaf; the observation has 'screen', 'position'"),
        ({"encoder": (f"position={MODULE}:None_",)}, f"encoder = '{MODULE}:None_': .*user_encoders.py has no None_"),
        (
            {"encoder": (f"position={MODULE}:Good",), "encoder_options": '{"position": {"siz": 9}}'},
            r"encoder_options = .*: Good\(leaf, output_size=6, \*, gain=1.0\): .*unexpected keyword argument 'siz'",
        ),
        (
            {"encoder": (f"position={MODULE}:Good",), "image_layout": ("position=flat",)},
            "image_layout = 'position=flat': the leaf has an encoder of your own",
        ),
    ],
)
def test_settings_that_do_not_suit_the_observation_are_refused(settings: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make_model([FRAMES, VECTOR], [discrete(A)], ModelConfig(**settings))  # type: ignore[arg-type]


def test_the_example_learns_what_a_repeated_batch_is_worth(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(EXAMPLES)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "my_encoder", raising=False)
    torch.manual_seed(0)
    options = '{".": {"num_frequencies": 16}}'
    config = ModelConfig(encoder=(".=my_encoder:FourierFeatures",), encoder_options=options)
    model = make_model([VECTOR], [discrete(A)], config)
    optimizer = OptimizerConfig(learning_rate=1e-2, learning_rate_schedule="constant")
    learner = Learner(model, optimizer, LossConfig(discounting=0.0), schedule_steps=1)
    losses = [learner.update(random_rollout(), 0).parts["baseline_loss"] for _ in range(40)]
    assert losses[-1] < 0.3 * losses[0]
