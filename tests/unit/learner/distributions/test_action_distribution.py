"""The joint distribution over action leaves agrees with torch.distributions."""

import math
from collections.abc import Sequence

import numpy as np
import pytest
import torch
from torch import Tensor
from torch import distributions as reference

from kubebeast_learner.distributions import ActionDistribution
from kubebeast_learner.distributions.normal import LOG_STD_RANGE
from kubebeast_learner.errors import ModelSpecError
from tests.unit.learner.algorithm.learning_data import Leaf, discrete

CHOICES = [Leaf((), "int64", "0", num_categories=3), Leaf((), "int64", "1", num_categories=5)]
BITS = Leaf((4,), "int8", "bits", num_categories=2)
FREE = Leaf((2, 3), "float32", "free")
BOUNDED = Leaf((2,), "float32", "steer", bounded=True)
SPACES = {
    "discrete": [discrete(6)],
    "multi-discrete": CHOICES,
    "multi-binary": [BITS],
    "box": [FREE],
    "bounded box": [BOUNDED],
    "dict": [BITS, BOUNDED, discrete(3), FREE],
}
LEADING = (3, 5)


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def random_logits(distribution: ActionDistribution, *leading: int) -> Tensor:
    return torch.randn(*leading, distribution.num_logits, generator=generator()).clamp(-2, 1)


def references(action: Sequence[Leaf], policy_logits: Tensor) -> list[reference.Distribution]:
    """Returns a distribution over the elements [*, E] of each leaf."""
    found: list[reference.Distribution] = []
    start = 0
    for leaf in action:
        num_elements = math.prod(leaf.row_shape)
        size = num_elements * (leaf.num_categories or 2)
        logits = policy_logits[..., start : start + size]
        start += size
        if leaf.num_categories:
            by_element = logits.reshape(*logits.shape[:-1], num_elements, leaf.num_categories)
            found.append(reference.Categorical(logits=by_element))
            continue
        normal: reference.Distribution = reference.Normal(logits[..., :num_elements], logits[..., num_elements:].exp())
        if leaf.bounded:
            normal = reference.TransformedDistribution(normal, [reference.TanhTransform()])
        found.append(normal)
    assert start == policy_logits.shape[-1]
    return found


@pytest.mark.parametrize("name", SPACES)
def test_log_probabilities_are_those_of_the_joint_action(name: str) -> None:
    action = SPACES[name]
    distribution = ActionDistribution.of(action, "tanh")
    policy_logits = random_logits(distribution, *LEADING)
    drawn = distribution.sample(policy_logits, generator())
    expected = torch.zeros(LEADING)
    taken = distribution.squashed(drawn)
    elements = iter((taken.unsqueeze(-1) if name == "discrete" else taken).unbind(-1))
    for leaf, part in zip(action, references(action, policy_logits), strict=True):
        values = torch.stack([next(elements) for _ in range(math.prod(leaf.row_shape))], dim=-1)
        expected += part.log_prob(values).sum(dim=-1)
    torch.testing.assert_close(distribution.log_prob(policy_logits, drawn), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", SPACES)
def test_entropies_are_those_of_the_joint_action(name: str) -> None:
    action = SPACES[name]
    distribution = ActionDistribution.of(action, "tanh")
    policy_logits = random_logits(distribution, *LEADING)
    expected = torch.zeros(LEADING)
    for leaf, part in zip(action, references(action, policy_logits), strict=True):
        if leaf.bounded:  # no closed form: the mean of -log p over many samples
            torch.manual_seed(0)
            samples = part.rsample(torch.Size([200_000])).clamp(-1 + 1e-6, 1 - 1e-6)
            expected += -part.log_prob(samples).mean(dim=0).sum(dim=-1)
        else:
            expected += part.entropy().sum(dim=-1)
    torch.testing.assert_close(distribution.entropy(policy_logits), expected, rtol=0.0, atol=0.06)


@pytest.mark.parametrize("log_std", [*LOG_STD_RANGE, 0.0])
@pytest.mark.parametrize("mean", [0.0, 1.0, -4.0])
def test_the_entropy_of_a_squashed_normal_is_right_over_the_whole_range(mean: float, log_std: float) -> None:
    """Compares with the trapezoidal rule over the unsquashed density."""
    distribution = ActionDistribution.of([Leaf((1,), "float32", "steer", bounded=True)], "tanh")
    std = math.exp(log_std)
    u = torch.linspace(mean - 10 * std, mean + 10 * std, 200_001, dtype=torch.float64)
    log_density = -0.5 * ((u - mean) / std) ** 2 - log_std - 0.5 * math.log(2 * math.pi)
    log_slope = 2 * (math.log(2) - u - torch.nn.functional.softplus(-2 * u))
    expected = torch.trapezoid(log_density.exp() * (log_slope - log_density), u)
    actual = distribution.entropy(torch.tensor([mean, log_std]))
    assert float(actual) == pytest.approx(float(expected), abs=0.02 * max(1.0, std))


@pytest.mark.parametrize("name", SPACES)
def test_samples_follow_the_distribution(name: str) -> None:
    """Compares the mean of the features of many samples with that of the reference."""
    action = SPACES[name]
    distribution = ActionDistribution.of(action, "tanh")
    policy_logits = random_logits(distribution)
    num_samples = 20_000
    drawn = distribution.sample(policy_logits.expand(num_samples, -1), generator())
    assert drawn.dtype == distribution.action_dtype
    assert tuple(drawn.shape) == (num_samples, *distribution.action_shape)
    torch.manual_seed(1)
    expected = []
    for leaf, part in zip(action, references(action, policy_logits), strict=True):
        samples = part.sample(torch.Size([num_samples]))
        if leaf.num_categories:
            samples = torch.nn.functional.one_hot(samples, leaf.num_categories).flatten(1).float()
        expected.append(samples.mean(dim=0))
    features = distribution.features(distribution.squashed(drawn))
    torch.testing.assert_close(features.mean(dim=0), torch.cat(expected), rtol=0, atol=0.06)


@pytest.mark.parametrize("name", SPACES)
def test_actions_survive_their_leaves(name: str) -> None:
    action = SPACES[name]
    distribution = ActionDistribution.of(action, "tanh")
    policy_logits = random_logits(distribution, 7)
    drawn = distribution.sample(policy_logits, generator())
    taken = distribution.squashed(drawn)
    arrays = distribution.to_leaves(taken)
    for leaf, array in zip(action, arrays, strict=True):
        assert (array.shape, array.dtype) == ((7, *leaf.row_shape), np.dtype(leaf.dtype))
        assert array.flags.c_contiguous
        if leaf.bounded:
            assert (np.abs(array) <= 1).all()
    returned = distribution.from_leaves(arrays)
    torch.testing.assert_close(returned, taken)
    record = distribution.record(policy_logits, drawn)
    assert record.shape == (7, distribution.record_size)
    recalled = distribution.recall(record, returned)
    torch.testing.assert_close(recalled, (policy_logits, drawn), rtol=0, atol=0)


@pytest.mark.parametrize("mean", [-30.0, 12.0, 30.0])
def test_log_probabilities_of_saturated_actions_are_exact_and_lead_back_to_what_was_drawn(mean: float) -> None:
    distribution = ActionDistribution.of([Leaf((1,), "float32", "steer", bounded=True)], "tanh")
    policy_logits = torch.tensor([mean, -1.0], requires_grad=True)
    drawn = distribution.sample(policy_logits.detach().expand(1000, -1), generator())
    assert (distribution.squashed(drawn).abs() == 1.0).all(), "tanh is rounded to 1: it tells nothing any more"
    log_probs = distribution.log_prob(policy_logits.expand(1000, -1), drawn)
    u, std = drawn.double().squeeze(-1), torch.tensor(-1.0).double().exp()
    slope = 2 * (math.log(2) - u - torch.nn.functional.softplus(-2 * u))
    expected = -0.5 * ((u - mean) / std) ** 2 - std.log() - 0.5 * math.log(2 * math.pi) - slope
    torch.testing.assert_close(log_probs.double(), expected, rtol=1e-4, atol=1e-3)
    above = log_probs[u > mean].mean()
    (gradient,) = torch.autograd.grad(above, policy_logits)
    assert gradient[0] > 0, "a larger mean makes what lies above it likelier"


def test_a_mean_that_is_no_number_is_not_sent_to_an_environment() -> None:
    for bounded_actions in ("tanh", "clip"):
        distribution = ActionDistribution.of([BOUNDED], bounded_actions)
        drawn = distribution.sample(torch.full((5, 4), torch.nan), generator())
        assert distribution.squashed(drawn).isfinite().all()


@pytest.mark.parametrize("name", SPACES)
def test_the_mode_is_at_least_as_likely_as_samples(name: str) -> None:
    distribution = ActionDistribution.of(SPACES[name], "clip")
    policy_logits = random_logits(distribution, *LEADING)
    best = distribution.log_prob(policy_logits, distribution.mode(policy_logits))
    for seed in range(20):
        drawn = distribution.sample(policy_logits, generator(seed))
        assert (distribution.log_prob(policy_logits, drawn) <= best + 1e-5).all()


@pytest.mark.parametrize("name", SPACES)
def test_gradients_are_finite_even_for_extreme_parameters_and_actions(name: str) -> None:
    distribution = ActionDistribution.of(SPACES[name], "tanh")
    for scale in (1.0, 100.0):
        policy_logits = (scale * random_logits(distribution, 50)).requires_grad_()
        drawn = distribution.sample(policy_logits.detach(), generator())
        total = distribution.log_prob(policy_logits, drawn).sum() + distribution.entropy(policy_logits).sum()
        assert total.isfinite()
        (gradient,) = torch.autograd.grad(total, policy_logits)
        assert gradient.isfinite().all()


def test_only_squashed_numbers_keep_within_the_bounds_by_themselves() -> None:
    for distribution, keeps in (
        (ActionDistribution.of([BOUNDED], "tanh"), True),
        (ActionDistribution.of([BOUNDED], "clip"), False),
    ):
        drawn = distribution.squashed(distribution.sample(torch.zeros(10_000, 4), generator()))
        assert (float(drawn.abs().max()) <= 1.0) == keeps


@pytest.mark.parametrize("name", ["discrete", "multi-discrete", "multi-binary", "dict"])
def test_a_masked_category_is_never_chosen_and_has_no_gradient(name: str) -> None:
    distribution = ActionDistribution.of(SPACES[name], "tanh")
    policy_logits = random_logits(distribution, 2000).requires_grad_()
    mask = torch.rand(2000, distribution.num_categories, generator=generator()) < 0.6
    masked = distribution.masked(policy_logits, mask)
    forbidden = masked.isneginf()
    drawn = distribution.sample(masked.detach(), generator())
    log_probs = distribution.log_prob(masked, drawn)
    assert log_probs.isfinite().all()
    assert torch.equal(distribution.log_prob(masked, distribution.mode(masked)).isfinite(), torch.full((2000,), True))
    entropy = distribution.entropy(masked)
    assert entropy.isfinite().all()
    (gradient,) = torch.autograd.grad((log_probs + entropy).sum(), policy_logits)
    assert gradient.isfinite().all()
    assert not gradient[forbidden].any()
    assert forbidden.any()


def test_a_mask_says_for_each_choice_which_categories_it_has() -> None:
    distribution = ActionDistribution.of([*CHOICES, BOUNDED], "tanh")
    mask = torch.tensor([1, 0, 1, 0, 0, 0, 0, 1], dtype=torch.bool)
    masked = distribution.masked(torch.zeros(1, distribution.num_logits), mask.unsqueeze(0))
    assert torch.equal(masked[0, :8].isneginf(), ~mask)
    assert not masked[0, 8:].any()


def test_a_choice_that_a_mask_leaves_nothing_is_free() -> None:
    distribution = ActionDistribution.of(CHOICES)
    mask = torch.tensor([[0, 0, 0, 0, 1, 0, 0, 0]], dtype=torch.bool)
    masked = distribution.masked(torch.zeros(1, 8), mask)
    assert masked[0].isneginf().tolist() == [False] * 3 + [True, False, True, True, True]


def test_log_prob_names_a_wrong_shape() -> None:
    with pytest.raises(ValueError, match=r"action has shape \[3\], it must be \[3, 2\]"):
        ActionDistribution.of(CHOICES).log_prob(torch.zeros(3, 8), torch.zeros(3))


@pytest.mark.parametrize(
    ("action", "message"),
    [
        ([], "no leaf"),
        ([Leaf((2,), "int32", "keys")], r'"keys" \(int32 \[2\]\) holds whole numbers without categories'),
        ([discrete(2), Leaf((0,), "float32", "nothing")], r'"nothing" .* has no elements'),
    ],
)
def test_what_cannot_be_chosen_is_refused_by_name(action: list[Leaf], message: str) -> None:
    with pytest.raises(ModelSpecError, match=message):
        ActionDistribution.of(action)
