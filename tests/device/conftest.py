"""Fixtures of the tests of graphs."""

from collections.abc import Iterator

import pytest
import torch

from kubebeast_learner.models import core


@pytest.fixture
def lstms_do_as_in_a_capture(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every row is a sequence; and oneDNN's LSTM keeps state of its own between its forward and backward pass."""
    monkeypatch.setattr(core, "_starts_of_sequences", lambda is_first: list(range(len(is_first))))
    torch._C._set_mkldnn_enabled(False)
    yield
    torch._C._set_mkldnn_enabled(True)
