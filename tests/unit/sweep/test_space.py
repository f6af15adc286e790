"""Parameters of a sweep's file become distributions, or an error that names them."""

import math

import pytest
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution

from kubebeast_common.settings import ConfigError
from kubebeast_sweep.space import num_points, point, read_space, to_setting


@pytest.mark.parametrize(
    ("value", "distribution"),
    [
        ([0.0, 0.01], CategoricalDistribution([0.0, 0.01])),
        ([True, None, "rmsprop"], CategoricalDistribution([True, None, "rmsprop"])),
        ({"range": [0.9, 0.99]}, FloatDistribution(0.9, 0.99)),
        ({"range": [0.0, 1.0], "step": 0.3}, FloatDistribution(0.0, 0.9, step=0.3)),
        ({"range": [0.2, 0.3], "step": 0.1}, FloatDistribution(0.2, 0.3, step=0.1)),
        ({"range": [0.5, 3.0], "step": 1}, FloatDistribution(0.5, 2.5, step=1)),
        ({"log": [1e-5, 1e-2]}, FloatDistribution(1e-5, 1e-2, log=True)),
        ({"range": [4, 64]}, IntDistribution(4, 64)),
        ({"range": [4, 65], "step": 20}, IntDistribution(4, 64, step=20)),
        ({"log": [4, 64]}, IntDistribution(4, 64, log=True)),
    ],
)
def test_a_parameter_is_a_list_of_choices_or_a_range(value: object, distribution: BaseDistribution) -> None:
    assert read_space({"name": value}) == {"name": distribution}


def test_choices_may_be_lists() -> None:
    space = read_space({"hidden_sizes": [[64, 64], [256]]})

    assert [to_setting(point(space, index)["hidden_sizes"]) for index in (0, 1)] == [[64, 64], [256]]


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ([], "parameters.rate = []: must have at least one choice"),
        ([1, 1], "parameters.rate = 1: is given twice"),
        (["[64]"], "parameters.rate = '[64]': must not begin with ["),
        ([{"a": 1}], "a choice must be a number"),
        (0.1, "parameters.rate = 0.1: must be a list of choices"),
        ({"range": [0, 1], "log": [1, 2]}, "must be a list of choices"),
        ({"range": [0, 1], "steps": 1}, "must be a list of choices"),
        ({"range": [1, 0]}, "parameters.rate.range = [1, 0]: must be [low, high]"),
        ({"range": [0, math.inf]}, "must be [low, high]"),
        ({"range": ["0", 1]}, "must be [low, high]"),
        ({"range": [0, 1], "step": 0}, "parameters.rate.step = 0: must be a positive number"),
        ({"range": [0, 1], "step": 2}, "parameters.rate.step = 2: must be at most high - low"),
        ({"range": [0, 1], "step": 1e-40}, "parameters.rate.step = 1e-40: must be at most high - low, and at least"),
        ({"range": [0, 10**400]}, "must be [low, high]"),
        ({"log": [1, 2], "step": 1}, "parameters.rate.step = 1: must be a positive number, of a range"),
        ({"log": [0, 1]}, "parameters.rate.log = [0, 1]: must be positive"),
    ],
)
def test_an_invalid_parameter_is_named_with_its_value(value: object, reason: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_space({"rate": value})

    assert reason in str(caught.value)


@pytest.mark.parametrize("parameters", [None, {}, [1], "rate"])
def test_parameters_are_a_mapping(parameters: object) -> None:
    with pytest.raises(ConfigError, match="parameters = "):
        read_space(parameters)


def test_combinations_are_counted_if_every_parameter_has_steps() -> None:
    assert num_points(read_space({"a": [1, 2, 3], "b": {"range": [0.0, 1.0], "step": 0.25}})) == 15
    assert num_points(read_space({"a": [1, 2, 3], "b": {"range": [0.0, 1.0]}})) == math.inf
    assert num_points(read_space({"a": [1, 2, 3], "b": {"log": [1, 8]}})) == 24
    assert num_points(read_space({"a": [1, 2, 3], "b": {"log": [0.1, 8]}})) == math.inf
    assert num_points(read_space({"a": {"range": [1, 10**12]}, "b": {"range": [1, 10**12]}})) == 10**24


def test_every_combination_has_an_index_and_lies_in_the_space() -> None:
    space = read_space({"a": [True, "x"], "b": {"range": [0.2, 0.3], "step": 0.1}, "c": {"log": [2, 4]}})
    found = [tuple(point(space, index).values()) for index in range(12)]

    assert found[:4] == [(True, 0.2, 2), (True, 0.2, 3), (True, 0.2, 4), (True, 0.3, 2)]
    assert found[-1] == ("x", 0.3, 4) and len(set(found)) == 12
