"""Certificates for the tests that need some."""

from pathlib import Path

import pytest

from harness.certificates import Authority, Pair, issue, make_ca


@pytest.fixture
def ca(tmp_path: Path) -> Authority:
    return make_ca(tmp_path)


@pytest.fixture
def stranger(tmp_path: Path) -> Authority:
    return make_ca(tmp_path, "stranger")


@pytest.fixture
def pair(ca: Authority, tmp_path: Path) -> Pair:
    return issue(ca, tmp_path, "listener")
