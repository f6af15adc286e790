"""A trace holds the spans of every thread and process on one clock, and opens in Perfetto."""

import json
import logging
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest
import torch

from kubebeast_learner.profiling import trace as profiling
from kubebeast_learner.profiling.trace import (
    RECORDED_UPDATES,
    SKIPPED_UPDATES,
    Profiler,
    ProfilerFollower,
    merge_traces,
    span,
)

UPDATE_SPANS = ("dequeue", "to_device", "forward", "backward", "optimizer", "publish")


class TinyTraining:
    """Updates of a linear model under the spans of a learner."""

    def __init__(self) -> None:
        self._model = torch.nn.Linear(3, 1)
        self._optimizer = torch.optim.SGD(self._model.parameters(), lr=0.1)

    def update(self) -> None:
        with span("dequeue"):
            batch = torch.ones(4, 3)
        with span("to_device"):
            batch = batch.to("cpu", copy=True)
        with span("forward"):
            loss = self._model(batch).sum()
        with span("backward"):
            loss.backward()
        with span("optimizer"):
            self._optimizer.step()
        with span("publish"):
            self._model.weight.detach().clone()


@contextmanager
def inference_thread() -> Iterator[threading.Barrier]:
    """Runs a thread that does one "inference" each time both meet at the barrier."""
    meet, stopping = threading.Barrier(2, timeout=60), threading.Event()

    def infer() -> None:
        while True:
            meet.wait()
            if stopping.is_set():
                return
            with span("inference"):
                torch.ones(8, 8) @ torch.ones(8, 8)
            meet.wait()

    thread = threading.Thread(target=infer, name="inference-0")
    thread.start()
    yield meet
    stopping.set()
    meet.wait()
    thread.join()


def read(path: Path) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["traceEvents"]
    return events


def spans(events: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    return [event for event in events if event.get("cat") == "user_annotation" and event["name"] == name]


def test_a_trace_holds_every_span_of_every_thread(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    training = TinyTraining()
    with caplog.at_level(logging.INFO), inference_thread() as meet, Profiler(True, tmp_path) as profiler:
        for _ in range(SKIPPED_UPDATES + RECORDED_UPDATES + 5):
            training.update()
            meet.wait()
            meet.wait()
            profiler.step()
    events = read(tmp_path / "trace.json")
    for name in (*UPDATE_SPANS, "inference"):
        found = spans(events, name)
        assert len(found) == RECORDED_UPDATES, name
        assert all(event["ph"] == "X" and event["dur"] > 0 for event in found)
    (learner,) = {event["tid"] for name in UPDATE_SPANS for event in spans(events, name)}
    (inference,) = {event["tid"] for event in spans(events, "inference")}
    names = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
    assert names[learner] == "MainThread" and names[inference] == "inference-0"
    assert f"trace of {RECORDED_UPDATES} updates: {tmp_path / 'trace.json'}" in caplog.text


def test_operators_lie_inside_their_span(tmp_path: Path) -> None:
    training = TinyTraining()
    with Profiler(True, tmp_path) as profiler:
        for _ in range(SKIPPED_UPDATES + RECORDED_UPDATES):
            training.update()
            profiler.step()
    events = read(tmp_path / "trace.json")
    forward = spans(events, "forward")[0]
    linear = next(event for event in events if event["name"] == "aten::linear")
    assert forward["ts"] <= linear["ts"] <= linear["ts"] + linear["dur"] <= forward["ts"] + forward["dur"]


def test_a_run_that_ends_early_leaves_what_it_recorded(tmp_path: Path) -> None:
    training = TinyTraining()
    with Profiler(True, tmp_path) as profiler:
        for _ in range(SKIPPED_UPDATES + 2):
            training.update()
            profiler.step()
    assert len(spans(read(tmp_path / "trace.json"), "forward")) == 2


def test_a_run_that_ends_before_the_recording_says_so(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with Profiler(True, tmp_path) as profiler:
        profiler.step()
    assert f"ended before update {SKIPPED_UPDATES}" in caplog.text
    assert list(tmp_path.iterdir()) == []


def test_without_profiling_spans_are_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profiling, "profile", None)  # a call would fail
    with Profiler(False, tmp_path) as profiler:
        for _ in range(SKIPPED_UPDATES + RECORDED_UPDATES):
            profiler.step()
        assert isinstance(span("forward"), nullcontext) and span("forward") is span("backward")
    assert list(tmp_path.iterdir()) == []


FOLLOWER = """
import sys
from pathlib import Path
from kubebeast_learner.profiling.trace import ProfilerFollower, span

class Lines:
    value = False
    def is_set(self): return self.value

window = Lines()
follower = ProfilerFollower(window, Path(sys.argv[1]), "actor-3")
for line in sys.stdin:
    window.value = line == "record\\n"
    follower.step()
    with span("inference"):
        pass
    print("done", flush=True)
"""


def test_the_traces_of_several_processes_become_one_on_one_clock(tmp_path: Path) -> None:
    command = [sys.executable, "-c", FOLLOWER, str(tmp_path)]
    window = threading.Event()
    training = TinyTraining()
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as actor:
        assert actor.stdin is not None and actor.stdout is not None

        def tell_actor() -> None:
            print("record" if window.is_set() else "rest", file=actor.stdin, flush=True)
            assert actor.stdout is not None and actor.stdout.readline() == "done\n"

        with Profiler(True, tmp_path, window) as profiler:
            for _ in range(SKIPPED_UPDATES + RECORDED_UPDATES):
                training.update()
                tell_actor()
                profiler.step()
        tell_actor()
        actor.stdin.close()
    merge_traces(tmp_path / "trace.json", [tmp_path / "trace-actor-3.json"])
    assert [path.name for path in tmp_path.iterdir()] == ["trace.json"]
    events = read(tmp_path / "trace.json")
    forward, inference = spans(events, "forward"), spans(events, "inference")
    assert {event["pid"] for event in inference}.isdisjoint(event["pid"] for event in forward)
    names = {event["args"]["name"] for event in events if event["name"] == "process_name"}
    assert {"learner", "actor-3"} <= names
    turns = sorted(forward + inference, key=lambda event: float(event["ts"]))
    assert [event["name"] for event in turns] == ["forward", "inference"] * RECORDED_UPDATES


def test_a_trace_with_another_time_base_is_shifted(tmp_path: Path) -> None:
    for name, base in (("trace.json", 5_000), ("trace-actor-0.json", 8_000)):
        event = {"ph": "X", "name": name, "ts": 1.0, "dur": 1.0}
        (tmp_path / name).write_text(json.dumps({"baseTimeNanoseconds": base, "traceEvents": [event]}))
    merge_traces(tmp_path / "trace.json", [tmp_path / "trace-actor-0.json"])
    assert [event["ts"] for event in read(tmp_path / "trace.json")] == [1.0, 4.0]


def test_a_torn_trace_is_left_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "trace.json").write_text('{"baseTimeNanoseconds": 0, "traceEvents": []}')
    (tmp_path / "trace-actor-0.json").write_text('{"baseTime')
    merge_traces(tmp_path / "trace.json", [tmp_path / "trace-actor-0.json"])
    assert read(tmp_path / "trace.json") == [] and "trace-actor-0.json left out" in caplog.text


def test_a_follower_without_a_window_records_nothing(tmp_path: Path) -> None:
    follower = ProfilerFollower(None, tmp_path, "actor-0")
    follower.step()
    assert list(tmp_path.iterdir()) == []
