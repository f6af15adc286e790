"""Learners that all tests of a module attack, and that stay unharmed."""

from collections.abc import Iterator

import pytest

from tests.attacks.siege import Siege


@pytest.fixture(scope="module", params=["plain", "tls"])
def siege(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Siege]:
    """A siege in which no host is blocked, so that each attack meets the limits of its own connection."""
    with Siege(tmp_path_factory.mktemp("siege"), "--max-offences=0", tls=request.param == "tls") as siege:
        yield siege
