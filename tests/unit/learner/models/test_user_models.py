"""Users' models and losses train, and every mistake is explained before training starts."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from kubebeast_learner.actors.weights import WeightPublisher
from kubebeast_learner.algorithm.learner import Learner
from kubebeast_learner.algorithm.loss_choice import check_loss, make_loss
from kubebeast_learner.algorithm.losses import IMPALA_PARTS, LossOutput, impala_loss
from kubebeast_learner.algorithm.precision import low_precision_dtype
from kubebeast_learner.config import ConfigError, LossConfig, ModelConfig, OptimizerConfig
from kubebeast_learner.models import Model, ModelSpecError, make_model
from tests.unit.learner.algorithm.learning_data import VECTOR, Leaf, discrete, make_mlp, random_rollout

A = 3
EXAMPLES = Path(__file__).parents[4] / "examples"
MODULE = "tests.unit.learner.models.user_models"


def user_model(name: str, observation: list[Leaf] | None = None) -> Model:
    return make_model(observation or [VECTOR], [discrete(A)], ModelConfig(model=name))


@pytest.fixture
def examples(monkeypatch: pytest.MonkeyPatch) -> None:
    """Changes to examples/; imports from there are undone afterwards."""
    monkeypatch.chdir(EXAMPLES)
    monkeypatch.setattr(sys, "path", list(sys.path))
    for name in ("my_net", "my_loss"):
        monkeypatch.delitem(sys.modules, name, raising=False)


@pytest.mark.usefixtures("examples")
def test_example_network_and_loss_learn_what_a_repeated_batch_is_worth() -> None:
    torch.manual_seed(0)
    model = user_model("my_net:MyNet")
    loss = LossConfig(loss="my_loss:my_loss", discounting=0.0)
    check_loss(loss, model, [VECTOR])
    optimizer = OptimizerConfig(learning_rate=1e-2, learning_rate_schedule="constant")
    learner = Learner(model, optimizer, loss, schedule_steps=1)
    rollout = random_rollout(core_state=model.initial_state(4))
    losses = [learner.update(rollout, 0).parts["baseline_loss"] for _ in range(40)]
    assert losses[-1] < 0.3 * losses[0]


@pytest.mark.usefixtures("examples")
def test_example_loss_adds_its_term_over_valid_transitions_only() -> None:
    rollout, model = random_rollout(), make_mlp()
    output, _ = model(rollout.model_inputs, ())
    config, cost = LossConfig(loss="my_loss:my_loss"), torch.tensor(0.01)
    logits = output.policy_logits.detach().clone()
    logits[:-1][~rollout.valid] = torch.nan
    extra = make_loss(config)(output._replace(policy_logits=logits), rollout, config, cost).total
    plain = impala_loss(output._replace(policy_logits=logits), rollout, config, cost).total
    expected = 1e-4 * logits[:-1][rollout.valid].square().sum()
    torch.testing.assert_close(extra - plain, expected, rtol=1e-3, atol=1e-6)


def test_user_model_keeps_the_contract_of_models() -> None:
    model = user_model(f"{MODULE}:Good")
    assert (model.distribution.num_logits, model.core_state_size) == (A, 6)
    state = tuple(torch.randn_like(tensor) for tensor in model.initial_state(4))
    torch.testing.assert_close(model.unpack_core_state(model.pack_core_state(state)), state)
    rollout = random_rollout(core_state=state)
    output, _ = model(rollout.model_inputs, rollout.core_state)
    assert output.policy_logits.shape == (6, 4, A)
    assert low_precision_dtype("bf16", model, torch.device("cpu")) == torch.float32


MASK = replace(VECTOR, row_shape=(A,), dtype="int8", path="mask")


def test_options_reach_a_user_model() -> None:
    config = ModelConfig(model=f"{MODULE}:Sized", model_options='{"policy_bias": 0.25}')
    model = make_model([VECTOR], [discrete(A)], config)
    assert model.state_dict()["net.policy.bias"].tolist() == [0.25] * A


def test_options_that_a_user_model_does_not_take_are_refused_with_those_that_it_takes() -> None:
    config = ModelConfig(model=f"{MODULE}:Sized", model_options='{"bias": 0.25}')
    expected = r"model_options = '{\"bias\": 0.25}': Sized\(observation, num_actions, policy_bias=0.0\): .*'bias'"
    with pytest.raises(ConfigError, match=expected):
        make_model([VECTOR], [discrete(A)], config)


def test_a_user_model_may_mask_actions() -> None:
    model = user_model(f"{MODULE}:Masked", [VECTOR, MASK])
    check_loss(LossConfig(loss=f"{MODULE}:log_likelihood_loss"), model, [VECTOR, MASK])


def test_a_model_that_masks_is_held_to_the_contract_as_any_other() -> None:
    with pytest.raises(ModelSpecError, match="carry core_state from row to row"):
        user_model(f"{MODULE}:MaskedWithoutMemory", [VECTOR, MASK])


def test_memoryless_user_model_has_no_core_state() -> None:
    assert user_model(f"{MODULE}:Memoryless").core_state_size == 0


def test_seed_decides_the_weights_and_the_check_draws_nothing_from_it() -> None:
    drawn = []
    for _ in range(2):
        torch.manual_seed(5)
        drawn.append((user_model(f"{MODULE}:Good").state_dict(), torch.rand(3)))
    torch.testing.assert_close(drawn[0][0], drawn[1][0], rtol=0, atol=0)
    torch.manual_seed(5)
    from tests.unit.learner.models.user_models import Good

    Good([VECTOR], A)
    torch.testing.assert_close(torch.rand(3), drawn[0][1], rtol=0, atol=0)


def test_user_model_comes_in_training_mode_without_gradients() -> None:
    model = user_model(f"{MODULE}:Good")
    assert all(module.training for module in model.modules())
    assert all(parameter.grad is None for parameter in model.parameters())


def test_buffers_of_a_user_model_are_published_with_its_weights() -> None:
    model = user_model(f"{MODULE}:Normalised")
    weights = WeightPublisher(model)
    learner = Learner(model, OptimizerConfig(), LossConfig(), schedule_steps=1)
    rollout = random_rollout()
    weights.publish(learner.update(rollout, 0).version)
    model.eval()
    with weights.acquire() as (replica, _), torch.no_grad():
        acted, _ = replica(rollout.model_inputs, ())
        trained, _ = model(rollout.model_inputs, ())
    torch.testing.assert_close(acted, trained)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("WrongConstructor", r"\(observation, num_actions=3\): TypeError: .*positional arguments"),
        ("WrongLayerSize", r"forward with T=3, B=2 failed: RuntimeError: mat1 and mat2.*\(user_models.py, line \d+\)"),
        ("NoInitialState", r"initial_state\(1\) failed: TypeError"),
        ("FlatInitialState", r"initial_state\(1\) must return .*\[num_layers, 1, size\].*\(float32 \[1, 6\]\)"),
        ("StateOfEveryBatchItsOwn", "num_layers and size must not depend on batch_size"),
        ("NoState", r"must return \(ModelOutput, core_state\), it returned \(float32 \[3, 2, 3\], float32 \[3, 2\]\)"),
        ("GrowingState", r"core_state must be like the one before, \(float32 \[1, 2, 6\]\), it is \(float32"),
        ("FlatLogits", r"policy_logits must be float32 \[3, 2, 3\], it is float32 \[6, 3\]"),
        ("UnsqueezedBaseline", r"baseline must be float32 \[3, 2\], it is float32 \[3, 2, 1\]"),
        ("DoubleBaseline", r"baseline must be float32 \[3, 2\], it is float64"),
        ("Mixing", "one environment's values depend on another's inputs"),
        ("LooksAhead", "3 rows in one call give other values than the same rows one by one"),
        ("NeverResets", "the first row of an episode depends on the episode before"),
        ("ResetsAtUnrollsOnly", "reset it at every row with is_first"),
        ("ForgetsToCarry", "carry core_state from row to row"),
        ("DetachedPolicy", "no gradient reaches a parameter from policy_logits"),
        ("NanLogits", "policy_logits must be finite, or -inf for an action that is masked"),
        ("InfiniteBaseline", "baseline must be finite"),
        ("InfiniteGradient", "the gradient of baseline is not finite"),
        ("HoldsALock", r"cannot be copied for the actors: TypeError: .*pickle"),
        ("HoldsMoreThanTensors", r"its state_dict has _extra_state, which is no tensor: take a buffer"),
        ("NOT_A_CLASS", "must be a subclass of torch.nn.Module, it is 3"),
        ("make_nothing", None),
    ],
)
def test_every_breach_of_the_contract_is_explained(name: str, message: str | None) -> None:
    if message is None:
        with pytest.raises(ConfigError, match=rf"model = '{MODULE}:{name}': .*user_models.py has no {name}"):
            user_model(f"{MODULE}:{name}")
        return
    with pytest.raises(ModelSpecError, match=rf"{name}.*{message}"):
        user_model(f"{MODULE}:{name}")


def test_model_that_suits_another_observation_is_explained() -> None:
    with pytest.raises(ModelSpecError, match=r"Good.forward with T=3, B=2 failed: .*user_models.py"):
        user_model(f"{MODULE}:Good", [VECTOR, replace(VECTOR, row_shape=(2, 2))])


@pytest.mark.parametrize("setting", ["model", "loss"])
def test_missing_module_is_named_with_where_it_was_looked_for(
    setting: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    expected = (
        rf"{setting} = 'no_such_module:x': there is no module no_such_module, neither in {tmp_path} nor installed"
    )
    with pytest.raises(ConfigError, match=expected):
        user_model("no_such_module:x") if setting == "model" else make_loss(LossConfig(loss="no_such_module:x"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("import torch\n\nx = torch.zeros(2) + torch.zeros(3)\n", r"RuntimeError: .* \(broken_net.py, line 3\)"),
        ("import no_such_thing\n", r"ModuleNotFoundError: No module named 'no_such_thing' \(broken_net.py, line 1\)"),
        ("class\n", r"SyntaxError: .*\(broken_net.py, line 1\)"),
    ],
)
def test_error_in_a_users_module_stays_visible(
    text: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken_net.py").write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    with pytest.raises(ConfigError, match=rf"model = 'broken_net:Net': importing broken_net failed: {message}"):
        user_model("broken_net:Net")


@pytest.mark.parametrize("name", ["shalow", "resnet", "my_net:", ":MyNet", "my net:MyNet"])
def test_unknown_model_is_refused_with_the_choices(name: str) -> None:
    with pytest.raises(ConfigError, match=rf"model = '{name}': must be auto, shallow, deep, mlp or module:Class"):
        ModelConfig(model=name)


def test_unknown_loss_is_refused_with_the_choices() -> None:
    with pytest.raises(ConfigError, match="loss = 'ppo': must be impala or module:function"):
        LossConfig(loss="ppo")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("detached_loss", "total carries no gradient"),
        ("unreduced_loss", r"total must be a scalar tensor, it is of shape \[3, 2\]"),
        ("number_loss", "entropy must be a scalar tensor, it is float"),
        ("misnamed_loss", "the part 'step,1' must be named by lower-case letters"),
        ("bare_loss", "the part bare must be a LossPart, it is tensor"),
        ("oddly_weighted_loss", "the part odd must be weighted_by loss, transitions or sum, it is 'mean'"),
        ("talkative_loss", "parts has 40 entries, at most 32 are logged"),
        ("nan_loss", "total must be finite, it is nan"),
        ("infinite_gradient_loss", "the gradient of total is not finite"),
        ("tensor_loss", "must return a LossOutput, it returned Tensor"),
        ("failing_loss", r"failed: IndexError: there is no row 7 \(user_models.py, line \d+\)"),
        ("NOT_A_CLASS", "must be a function, it is 3"),
    ],
)
@pytest.mark.parametrize("use_lstm", [False, True])
def test_every_breach_of_the_loss_contract_is_explained(name: str, message: str, use_lstm: bool) -> None:
    config = LossConfig(loss=f"{MODULE}:{name}")
    with pytest.raises(ConfigError, match=rf"loss = '{MODULE}:{name}': {message}"):
        check_loss(config, make_mlp(use_lstm=use_lstm), [VECTOR])


def test_options_reach_a_loss_of_ones_own() -> None:
    plain, own = (
        Learner(make_mlp(), OptimizerConfig(), loss, schedule_steps=1).update(random_rollout(), 0)
        for loss in (LossConfig(), LossConfig(loss=f"{MODULE}:scaled_loss", loss_options='{"scale": 3}'))
    )
    assert own.total_loss == pytest.approx(3 * plain.total_loss)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ('{"size": 3}', r"loss_options = .*: scaled_loss\(output, .*, entropy_cost, \*, scale\): missing .*'scale'"),
        ('{"scale": 3, "size": 3}', "loss_options = .*: scaled_loss.*: got an unexpected keyword argument 'size'"),
        ("{}", "loss = .*: failed: TypeError: .*'scale'"),
    ],
)
def test_options_that_a_loss_does_not_take_are_refused(options: str, message: str) -> None:
    config = LossConfig(loss=f"{MODULE}:scaled_loss", loss_options=options)
    with pytest.raises(ConfigError, match=message):
        check_loss(config, make_mlp(), [VECTOR])


def test_loss_of_ones_own_is_what_the_learner_minimises(monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.unit.learner.models import user_models

    def doubled(*arguments: object) -> LossOutput:
        loss = impala_loss(*arguments)  # type: ignore[arg-type]
        return loss._replace(total=2 * loss.total)

    monkeypatch.setattr(user_models, "doubled", doubled, raising=False)
    config = LossConfig(loss=f"{MODULE}:doubled")
    check_loss(config, make_mlp(), [VECTOR])
    plain, own = (
        Learner(make_mlp(), OptimizerConfig(), loss, schedule_steps=1).update(random_rollout(), 0)
        for loss in (LossConfig(), config)
    )
    assert own.total_loss == pytest.approx(2 * plain.total_loss)
    assert own.grad_norm == pytest.approx(2 * plain.grad_norm, rel=1e-5)


def test_a_loss_adds_parts_of_its_own() -> None:
    config = LossConfig(loss=f"{MODULE}:counting_loss")
    check_loss(config, make_mlp(), [VECTOR])
    rollout = random_rollout()

    stats = Learner(make_mlp(), OptimizerConfig(), config, schedule_steps=1).update(rollout, 0)

    assert list(stats.parts) == [*IMPALA_PARTS, "own_loss", "num_valid", "mean_reward"]
    assert stats.parts["own_loss"] == stats.total_loss
    assert stats.parts["num_valid"] == stats.num_transitions
    assert stats.parts["mean_reward"] == pytest.approx(rollout.rewards[1:][rollout.valid].mean().item())


def test_a_loss_of_several_ranks_must_be_finite_without_a_valid_transition() -> None:
    config = LossConfig(loss=f"{MODULE}:carelessly_averaged_loss")

    check_loss(config, make_mlp(A), [VECTOR])
    with pytest.raises(ConfigError, match="total must be finite, it is nan on a batch without a valid transition"):
        check_loss(config, make_mlp(A), [VECTOR], several_ranks=True)
