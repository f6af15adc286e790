"""Learners for all tests of a module that leave them alive."""

from collections.abc import Iterator

import pytest

from tests.system.environments import LEISURELY_MS
from tests.system.halves import Halves


@pytest.fixture(scope="module")
def halves(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Halves]:
    """Learner and neighbor, in which every row travels whole."""
    with Halves(tmp_path_factory.mktemp("halves"), env_ms=LEISURELY_MS) as halves:
        yield halves


@pytest.fixture(scope="module")
def stacked_halves(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Halves]:
    """Learner and neighbor, in which rows are stacks of four frames and only the newest frame travels."""
    with Halves(tmp_path_factory.mktemp("stacked"), frames=4, env_ms=LEISURELY_MS) as halves:
        yield halves
