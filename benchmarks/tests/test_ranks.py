"""The analysis of a trace in the benchmark of several ranks."""

import json
from pathlib import Path

import pytest

from benchmarks.ranks.trace import GRADIENT, SUM, communication, updates


def event(name: str, start_ms: float, end_ms: float) -> dict[str, object]:
    return {"ph": "X", "name": name, "ts": 1000 * start_ms, "dur": 1000 * (end_ms - start_ms)}


def update(since_ms: float) -> list[dict[str, object]]:
    """Returns events of an update of 100 ms, with a backward pass of 40 ms from 50 to 90."""
    spans = [
        (SUM, 0, 10),  # the turn
        ("forward", 10, 50),
        ("backward", 50, 100),
        (f"{GRADIENT}: AddmmBackward0", 50, 70),
        (f"{GRADIENT}: torch::autograd::AccumulateGrad", 70, 90),
        (SUM, 70, 86),  # a bucket
        (SUM, 88, 92),  # the last one
        (SUM, 95, 98),  # losses
    ]
    return [event(name, since_ms + start, since_ms + end) for name, start, end in spans]


def test_sums_are_told_apart_and_those_within_the_backward_pass_are_hidden(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    events = [one for number in range(3) for one in update(100.0 * number)]
    path.write_text(json.dumps({"traceEvents": [*events, {"ph": "M", "name": "process_name"}]}))

    found = updates(path)
    result = communication(found)

    assert len(found) == 2  # the beginning of the first is unknown
    assert result.update_ms == pytest.approx(100.0)
    assert (result.turn_ms, result.gradients_ms, result.losses_ms) == pytest.approx((10.0, 20.0, 3.0))
    assert result.hidden_ratio == pytest.approx(18 / 20)
    assert result.waited_ms == pytest.approx(2.0)
    assert result.communication_ratio == pytest.approx((10 + 2 + 3) / 100)
