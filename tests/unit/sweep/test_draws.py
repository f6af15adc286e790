"""Random parameters are spread evenly over their ranges."""

import itertools
from collections import Counter
from typing import Any

import pytest

from kubebeast_sweep.draws import random_parameters
from kubebeast_sweep.space import read_space


@pytest.mark.parametrize(
    ("given", "values"), [({"range": [1, 3]}, [1, 2, 3]), ({"range": [0.0, 0.6], "step": 0.3}, [0.0, 0.3, 0.6])]
)
def test_the_ends_of_a_range_of_steps_are_as_likely_as_the_others(given: dict[str, Any], values: list[float]) -> None:
    drawn = itertools.islice(random_parameters(read_space({"a": given}), 1), 3000)
    counts = Counter(float(str(each["a"])) for each in drawn)

    assert sorted(counts) == pytest.approx(values)
    assert all(count == pytest.approx(1000, abs=120) for count in counts.values())
