"""Learners for all tests of a worker that leave them alive."""

from collections.abc import Iterator

import pytest

from tests.system.environments import LEISURELY_MS
from tests.system.halves import Halves


@pytest.fixture(scope="session")
def halves(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Halves]:
    """Every row travels whole."""
    with Halves(tmp_path_factory.mktemp("halves"), env_ms=LEISURELY_MS) as halves:
        yield halves


@pytest.fixture(scope="session")
def stacked_halves(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Halves]:
    """Rows are stacks of four frames, of which the newest travels."""
    with Halves(tmp_path_factory.mktemp("stacked"), frames=4, env_ms=LEISURELY_MS) as halves:
        yield halves
