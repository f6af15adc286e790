"""Sampled steps become traces of spans, and an exporter without a receiver does no harm."""

import dataclasses
import logging
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, cast

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import kubebeast_native as native
from harness.ports import free_address
from kubebeast_common.cli import main as cli
from kubebeast_learner.config import ConfigError, PoolConfig
from kubebeast_learner.profiling import tracing
from kubebeast_learner.profiling.tracing import StepTracer, record_step
from tests.unit.native.native_client import Client, roll

MS = 1_000_000


@dataclasses.dataclass(frozen=True)
class Trace:
    """A StepTrace of the native pool: 10 ms in all, 4 ms of them outside the learner."""

    env_server_id: str = "pod-7"
    instance_id: str = "1"
    env_id: str = "Pong"
    num_envs: int = 8
    step: int = 41
    batch_rows: int = 64
    policy_version: int = 12
    env_ns: int = 3 * MS
    actions_sent_ns: int = 100 * MS
    received_ns: int = 104 * MS
    submitted_ns: int = 104 * MS
    taken_ns: int = 106 * MS
    gathered_ns: int = 107 * MS
    answered_ns: int = 109 * MS
    replied_ns: int = 110 * MS


def spans_of(trace: Trace | native.StepTrace) -> dict[str, ReadableSpan]:
    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    record_step(provider.get_tracer("test"), cast("native.StepTrace", trace))
    provider.shutdown()
    return {span.name: span for span in exporter.get_finished_spans()}


def times_ms(spans: dict[str, ReadableSpan]) -> dict[str, tuple[float, float]]:
    """Returns start and end since the trace began."""
    return {name: ((span.start_time or 0) / MS - 100, (span.end_time or 0) / MS - 100) for name, span in spans.items()}


def parent_of(span: ReadableSpan, spans: dict[str, ReadableSpan]) -> str | None:
    if span.parent is None:
        return None
    (name,) = (name for name, other in spans.items() if other.context.span_id == span.parent.span_id)
    return name


def test_the_phases_of_a_step_follow_each_other_without_a_gap() -> None:
    spans = spans_of(Trace())

    assert times_ms(spans) == {
        "step": (0, 10),
        "env": (0, 4),
        "env.step": (0.5, 3.5),
        "queue": (4, 6),
        "inference.gather": (6, 7),
        "inference.model": (7, 9),
        "reply": (9, 10),
    }
    parents = {name: parent_of(span, spans) for name, span in spans.items()}
    assert (parents.pop("step"), parents.pop("env.step"), set(parents.values())) == (None, "env", {"step"})
    assert len({span.context.trace_id for span in spans.values()}) == 1


def test_a_step_tells_whose_it_is_and_what_answered_it() -> None:
    spans = spans_of(Trace())

    assert dict(spans["step"].attributes or {}) == {
        "kubebeast.env_server_id": "pod-7",
        "kubebeast.instance_id": "1",
        "kubebeast.env_id": "Pong",
        "kubebeast.num_envs": 8,
        "kubebeast.step": 41,
        "kubebeast.batch_rows": 64,
        "kubebeast.policy_version": 12,
    }
    assert dict(spans["env"].attributes or {}) == {"kubebeast.wire_s": pytest.approx(1e-3)}


def test_a_parked_step_shows_how_long_it_was_held_back() -> None:
    times = times_ms(spans_of(Trace(submitted_ns=105 * MS)))

    assert (times["parked"], times["queue"]) == ((4, 5), (5, 6))


def test_environments_that_do_not_tell_their_time_are_one_span_with_the_wire() -> None:
    spans = spans_of(Trace(env_ns=0))

    assert "env.step" not in spans
    assert times_ms(spans)["env"] == (0, 4)
    assert not spans["env"].attributes


def test_a_trace_of_the_native_pool_is_recorded(pool: native.ActorPool, client: Client) -> None:
    roll(pool, client, 1)
    assert pool.take_step_traces() == []
    pool.trace_next_step()
    roll(pool, client, 2)
    (trace,) = pool.take_step_traces()
    assert (trace.env_server_id, trace.step, trace.batch_rows, trace.policy_version) == ("pod-0", 2, 2, 7)

    spans = spans_of(trace)
    assert set(spans) == {"step", "env", "queue", "inference.gather", "inference.model", "reply"}
    assert (spans["step"].start_time, spans["step"].end_time) == (trace.actions_sent_ns, trace.replied_ns)


def test_a_collector_that_is_not_there_is_complained_about_once(
    pool: native.ActorPool, client: Client, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tracing, "FLUSH_TIMEOUT_S", 0.1)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "3")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    tracer = StepTracer(pool, f"http://{free_address()}", interval_s=60.0, run_id="run")
    with caplog.at_level(logging.INFO), tracer:
        pool.trace_next_step()
        roll(pool, client, 2)
    for thread in threading.enumerate():
        if thread.name == "tracing":
            thread.join()

    complaints = [record for record in caplog.records if record.name == tracing.EXPORTER_LOGGER]
    assert len(complaints) == 1
    assert "127.0.0.1" in complaints[0].getMessage()


def test_whoever_traces_nothing_needs_no_opentelemetry() -> None:
    program = "import sys, kubebeast_learner.commands.train; sys.exit('opentelemetry' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], timeout=60).returncode == 0


def test_missing_packages_are_explained_before_there_is_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delitem(sys.modules, "kubebeast_learner.profiling.tracing")
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter", None)
    for name in [name for name in sys.modules if name.startswith("opentelemetry.exporter.")]:
        monkeypatch.delitem(sys.modules, name)
    words = ["learner", f"--savedir={tmp_path}", "--trace-endpoint=http://127.0.0.1:4318", "--log-format=text"]
    assert cli.main(words) == 1
    assert capsys.readouterr().err.endswith("pip install opentelemetry-sdk opentelemetry-exporter-otlp-proto-http\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"trace_endpoint": "collector:4318"}, "trace_endpoint = 'collector:4318': must be http://host:port"),
        ({"trace_endpoint": "http://"}, "trace_endpoint = 'http://': must be"),
        ({"trace_interval_s": 0.0}, "trace_interval_s = 0.0: must be positive"),
    ],
)
def test_a_place_for_traces_that_cannot_be_is_refused(settings: dict[str, Any], reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        PoolConfig(**settings)
