"""Models have the right shapes, are chosen by shape, carry the recurrent core and refuse other observations."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from torch.autograd import grad

from kubebeast_learner.config import ModelConfig
from kubebeast_learner.config.learning import InputChoice
from kubebeast_learner.models import CoreState, Model, ModelInputs, make_model
from kubebeast_learner.models.actor_critic import ActorCritic
from kubebeast_learner.models.torsos.deep import DeepTorso
from kubebeast_learner.models.torsos.image import for_tensor_cores
from kubebeast_learner.models.torsos.shallow import ShallowTorso
from tests.unit.learner.algorithm.learning_data import FRAMES, VECTOR, Leaf, discrete, make_mlp, random_leaf

A = 4


def random_inputs(observation: list[Leaf], T: int, B: int) -> ModelInputs:
    return ModelInputs(
        observation=tuple(random_leaf(leaf, T, B) for leaf in observation),
        reward=3 * torch.randn(T, B),
        last_action=torch.randint(A, (T, B)),
        is_first=torch.rand(T, B) < 0.3,
    )


def rows(inputs: ModelInputs, start: int, end: int) -> ModelInputs:
    return inputs.map(lambda x: x[start:end])


@pytest.mark.parametrize("separate_baseline", [False, True])
@pytest.mark.parametrize("use_lstm", [False, True])
@pytest.mark.parametrize(
    ("name", "observation"),
    [
        ("shallow", [FRAMES]),
        ("deep", [replace(FRAMES, row_shape=(4, 42, 40))]),
        ("mlp", [VECTOR, Leaf((3,), "uint8", "pixels"), Leaf((), "int64", "room", num_categories=7)]),
    ],
)
def test_output_and_state_shapes(name: str, observation: list[Leaf], use_lstm: bool, separate_baseline: bool) -> None:
    config = ModelConfig(model=name, use_lstm=use_lstm, separate_baseline=separate_baseline)
    model = make_model(observation, [discrete(A)], config)
    T, B = 3, 2
    core_state = model.initial_state(B)
    output, new_state = model(random_inputs(observation, T, B), core_state)
    assert output.policy_logits.shape == (T, B, A)
    assert output.baseline.shape == (T, B)
    assert output.policy_logits.dtype == output.baseline.dtype == torch.float32
    assert [tensor.shape for tensor in new_state] == [tensor.shape for tensor in core_state]
    assert (model.core_state_size > 0) == use_lstm
    if use_lstm:
        assert model.pack_core_state(new_state).shape == (B, model.core_state_size)


def test_shallow_and_deep_have_the_published_sizes() -> None:
    shallow = make_model([FRAMES], [discrete(6)], ModelConfig(model="shallow", use_lstm=True))
    assert isinstance(shallow, ActorCritic)
    assert isinstance(shallow.torso, ShallowTorso)
    assert shallow.torso.fc.in_features == 3136
    assert shallow.core_state_size == 2 * 2 * (512 + 1 + 6)
    deep = make_model([FRAMES], [discrete(6)], ModelConfig(model="deep", use_lstm=True))
    assert isinstance(deep, ActorCritic)
    assert isinstance(deep.torso, DeepTorso)
    assert deep.torso.fc.in_features == 3872
    assert deep.core_state_size == 2 * 256


@pytest.mark.parametrize("name", ["shallow", "deep"])
def test_images_of_every_size_are_taken(name: str) -> None:
    for height, width in zip(range(36, 68), range(67, 35, -1), strict=True):
        image = Leaf((height, width, 1), "uint8")
        model = make_model([image], [discrete(A)], ModelConfig(model=name))
        output, _ = model(random_inputs([image], 1, 1), model.initial_state(1))
        assert output.baseline.shape == (1, 1)


LSTM_NAMES = [
    f"core.lstm.{kind}_{part}_l{layer}" for layer in (0, 1) for kind in ("weight", "bias") for part in ("ih", "hh")
]
HEAD_SHAPES = {"policy.bias": (6,), "baseline.bias": (1,)}


MLP_SHAPES = {
    "torso.layers.0.weight": (64, 5 + 14),
    "torso.layers.0.bias": (64,),
    "torso.layers.2.weight": (64, 64),
    "torso.layers.2.bias": (64,),
    "policy.weight": (6, 64),
    "baseline.weight": (1, 64),
    **HEAD_SHAPES,
}


@pytest.mark.parametrize("name", ["auto", "mlp"])
def test_weights_of_vectors_and_categories_keep_their_names_and_shapes(name: str) -> None:
    observation = [VECTOR, Leaf((2,), "int64", "room", num_categories=7)]
    model = make_model(observation, [discrete(6)], ModelConfig(model=name))
    assert {key: tuple(tensor.shape) for key, tensor in model.state_dict().items()} == MLP_SHAPES


@pytest.mark.parametrize(
    ("name", "shapes"),
    [
        (
            "shallow",
            {
                "torso.conv1.weight": (32, 4, 8, 8),
                "torso.conv1.bias": (32,),
                "torso.conv2.weight": (64, 32, 4, 4),
                "torso.conv2.bias": (64,),
                "torso.conv3.weight": (64, 64, 3, 3),
                "torso.conv3.bias": (64,),
                "torso.fc.weight": (512, 3136),
                "torso.fc.bias": (512,),
                "policy.weight": (6, 519),
                "baseline.weight": (1, 519),
                **HEAD_SHAPES,
            },
        ),
        (
            "deep",
            {
                **{
                    f"torso.sections.{4 * i}.{kind}": (size, *rest)
                    for i, (before, size) in enumerate([(4, 16), (16, 32), (32, 32)])
                    for kind, rest in (("weight", (before, 3, 3)), ("bias", ()))
                },
                **{
                    f"torso.sections.{4 * i + block}.conv{j}.{kind}": (size, *rest)
                    for i, size in enumerate([16, 32, 32])
                    for block in (2, 3)
                    for j in (1, 2)
                    for kind, rest in (("weight", (size, 3, 3)), ("bias", ()))
                },
                "torso.fc.weight": (256, 3872),
                "torso.fc.bias": (256,),
                "policy.weight": (6, 257),
                "baseline.weight": (1, 257),
                **HEAD_SHAPES,
            },
        ),
    ],
)
def test_weights_keep_the_names_and_shapes_of_saved_checkpoints(name: str, shapes: dict[str, tuple[int, ...]]) -> None:
    model = make_model([FRAMES], [discrete(6)], ModelConfig(model=name))
    assert {key: tuple(tensor.shape) for key, tensor in model.state_dict().items()} == shapes
    recurrent = make_model([FRAMES], [discrete(6)], ModelConfig(model=name, use_lstm=True)).state_dict()
    num_lstm_weights = 8 if name == "shallow" else 4
    assert sorted(recurrent.keys() - shapes.keys()) == sorted(LSTM_NAMES[:num_lstm_weights])


@pytest.mark.parametrize(
    ("name", "reward", "last_action", "num_inputs"),
    [
        ("mlp", "auto", "auto", 0),
        ("mlp", "on", "off", 1),
        ("mlp", "on", "on", 1 + A),
        ("shallow", "auto", "auto", 1 + A),
        ("shallow", "off", "auto", A),
        ("shallow", "off", "off", 0),
        ("deep", "auto", "auto", 1),
        ("deep", "auto", "on", 1 + A),
    ],
)
def test_reward_and_last_action_enter_as_chosen(
    name: str, reward: InputChoice, last_action: InputChoice, num_inputs: int
) -> None:
    observation = [VECTOR] if name == "mlp" else [FRAMES]
    config = ModelConfig(model=name, hidden_sizes=(8,), reward_input=reward, last_action_input=last_action)
    model = make_model(observation, [discrete(A)], config)
    assert isinstance(model, ActorCritic)
    assert model.policy.in_features == model.torso.output_size + num_inputs
    inputs = random_inputs(observation, 1, 3)
    with_reward = model(inputs._replace(reward=inputs.reward * 0), ())[0].baseline
    with_action = model(inputs._replace(last_action=(inputs.last_action + 1) % A), ())[0].baseline
    before = model(inputs, ())[0].baseline
    assert torch.equal(with_reward, before) == (num_inputs in (0, A))
    assert torch.equal(with_action, before) == (num_inputs < A)


def test_core_sees_features_then_clipped_reward_then_last_action() -> None:
    config = ModelConfig(model="mlp", hidden_sizes=(8,), reward_input="on", last_action_input="on")
    model = make_model([VECTOR], [discrete(A)], config)
    assert isinstance(model, ActorCritic)
    seen = []
    model.policy.register_forward_pre_hook(lambda _, arguments: seen.append(arguments[0]))
    inputs = random_inputs([VECTOR], 2, 3)
    model(inputs, ())
    features, reward, last_action = seen[0].split([8, 1, A], dim=-1)
    torch.testing.assert_close(features, model.torso(*inputs.observation))
    torch.testing.assert_close(reward.squeeze(-1), inputs.reward.clamp(-1, 1))
    torch.testing.assert_close(last_action.argmax(-1), inputs.last_action)
    torch.testing.assert_close(last_action.sum(-1), torch.ones(2, 3))


def test_reward_is_clipped_before_it_enters() -> None:
    model = make_model([FRAMES], [discrete(A)], ModelConfig(model="shallow"))
    inputs = random_inputs([FRAMES], 1, 1)
    one, hundred = (model(inputs._replace(reward=torch.full((1, 1), r)), ())[0] for r in (1.0, 100.0))
    torch.testing.assert_close(one.baseline, hundred.baseline)
    half = model(inputs._replace(reward=torch.full((1, 1), 0.5)), ())[0]
    assert not torch.equal(one.baseline, half.baseline)


def lstm_and_inputs(T: int, B: int) -> tuple[Model, ModelInputs, CoreState]:
    model = make_mlp(A, use_lstm=True)
    return model, random_inputs([VECTOR], T, B), tuple(torch.randn_like(x) for x in model.initial_state(B))


def test_an_episode_start_forgets_the_core_state() -> None:
    model, inputs, core_state = lstm_and_inputs(1, 2)
    inputs = inputs._replace(is_first=torch.tensor([[True, False]]))
    output, _ = model(inputs, core_state)
    fresh, _ = model(inputs, model.initial_state(2))
    torch.testing.assert_close(output.baseline[0, 0], fresh.baseline[0, 0])
    assert not torch.isclose(output.baseline[0, 1], fresh.baseline[0, 1])


def test_a_broken_core_state_does_not_survive_an_episode_start() -> None:
    model, inputs, core_state = lstm_and_inputs(1, 2)
    broken = tuple(torch.full_like(tensor, torch.nan) for tensor in core_state)
    output, _ = model(inputs._replace(is_first=torch.ones(1, 2, dtype=torch.bool)), broken)
    assert output.baseline.isfinite().all()


def test_an_unroll_equals_its_single_steps() -> None:
    T, B = 9, 4
    model, inputs, core_state = lstm_and_inputs(T, B)
    assert inputs.is_first[1:].any()
    whole, last = model(inputs, core_state)
    state, logits, baselines = core_state, [], []
    for t in range(T):
        output, state = model(rows(inputs, t, t + 1), state)
        logits.append(output.policy_logits)
        baselines.append(output.baseline)
    torch.testing.assert_close(torch.cat(logits), whole.policy_logits)
    torch.testing.assert_close(torch.cat(baselines), whole.baseline)
    torch.testing.assert_close(state, last)


def test_core_state_is_carried_over_eleven_unrolls_and_zeroed_at_episode_starts() -> None:
    """Every unroll starts from the last state of the one before: together they are one long pass."""
    T, B, num_unrolls = 5, 3, 11
    model, inputs, core_state = lstm_and_inputs(num_unrolls * T, B)
    whole, _ = model(inputs, core_state)
    fresh = model.initial_state(B)
    for first in range(0, num_unrolls * T, T):
        unroll = rows(inputs, first, first + T)
        output, next_state = model(unroll, core_state)
        torch.testing.assert_close(output.baseline, whole.baseline[first : first + T])
        from_zeros, _ = model(unroll, fresh)
        started = unroll.is_first[0]
        torch.testing.assert_close(output.baseline[0, started], from_zeros.baseline[0, started])
        assert not torch.isclose(output.baseline[0, ~started], from_zeros.baseline[0, ~started]).any()
        core_state = next_state


def test_packing_a_core_state_is_reversible_and_by_environment() -> None:
    model = make_model([FRAMES], [discrete(2)], ModelConfig(model="shallow", use_lstm=True))
    core_state = tuple(torch.randn_like(tensor) for tensor in model.initial_state(3))
    packed = model.pack_core_state(core_state)
    torch.testing.assert_close(model.unpack_core_state(packed), core_state)
    torch.testing.assert_close(packed[1:2], model.pack_core_state(tuple(x[:, 1:2] for x in core_state)))
    with pytest.raises(ValueError, match="core_state"):
        model.unpack_core_state(packed[:, 1:])


@pytest.mark.parametrize("use_lstm", [False, True])
def test_a_separate_baseline_and_the_policy_share_no_weight(use_lstm: bool) -> None:
    config = ModelConfig(model="mlp", hidden_sizes=(8,), use_lstm=use_lstm, separate_baseline=True)
    model = make_model([VECTOR], [discrete(A)], config)
    output, _ = model(random_inputs([VECTOR], 2, 3), model.initial_state(3))
    names, weights = zip(*model.named_parameters(), strict=True)

    def used_by(part: torch.Tensor) -> set[str]:
        gradients: Sequence[torch.Tensor | None] = grad(part.sum(), weights, allow_unused=True, retain_graph=True)
        return {name for name, gradient in zip(names, gradients, strict=True) if gradient is not None}

    of_policy, of_baseline = map(used_by, output)
    assert of_policy | of_baseline == set(names)
    assert not of_policy & of_baseline


def test_deviations_begin_as_chosen() -> None:
    action = Leaf((3,), "float32", bounded=True)
    model = make_model([VECTOR], [action], ModelConfig(model="mlp", hidden_sizes=(8,), log_std_init=-1.5))
    output, _ = model(random_inputs([VECTOR], 2, 3), ())
    assert (output.policy_logits[..., 3:] == -1.5).all()


def test_seed_decides_the_initial_weights() -> None:
    first, second, other = (make_mlp(seed=seed).state_dict() for seed in (1, 1, 2))
    torch.testing.assert_close(first, second, rtol=0, atol=0)
    assert not torch.equal(first["policy.weight"], other["policy.weight"])


def test_orthogonal_initialisation_keeps_the_scale_and_starts_with_a_nearly_uniform_policy() -> None:
    torch.manual_seed(0)
    model = make_model([FRAMES], [discrete(A)], ModelConfig(model="shallow", initialisation="orthogonal"))
    assert isinstance(model, ActorCritic)
    assert isinstance(model.torso, ShallowTorso)
    weight = model.torso.conv2.weight.flatten(1)
    torch.testing.assert_close(weight @ weight.T, 2 * torch.eye(len(weight)), rtol=0, atol=1e-4)
    output, _ = model(random_inputs([FRAMES], 1, 8), ())
    torch.testing.assert_close(output.policy_logits.softmax(-1), torch.full((1, 8, A), 1 / A), rtol=0.1, atol=0)
    assert not model.torso.fc.bias.any()


def test_channels_of_zeros_for_tensor_cores_change_no_feature() -> None:
    images, weight = torch.rand(3, 4, 9, 9).contiguous(memory_format=torch.channels_last), torch.rand(2, 4, 3, 3)
    padded = for_tensor_cores(images)
    assert padded.shape == (3, 8, 9, 9) and padded.is_contiguous(memory_format=torch.channels_last)
    torch.testing.assert_close(F.conv2d(padded, for_tensor_cores(weight)), F.conv2d(images, weight))
