"""OpenTelemetry traces of sampled vector steps and their phases, exported to a collector by OTLP over HTTP.

https://opentelemetry.io/docs/specs/otlp/#otlphttp; the OTEL_* variables of the SDK apply (headers, TLS, timeouts).
"""

import logging
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Self

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Tracer, set_span_in_context

from kubebeast_learner import __version__
from kubebeast_learner.profiling.timer import Timer

if TYPE_CHECKING:
    from kubebeast_native import ActorPool, StepTrace

logger = logging.getLogger(__name__)

FLUSH_TIMEOUT_S = 5.0
"""Longest wait for the collector at the end of a run."""
COMPLAINT_INTERVAL_S = 60.0
"""Shortest time between two log lines about a collector that does not accept spans."""

EXPORTER_LOGGER = "opentelemetry.exporter.otlp.proto.http.trace_exporter"
PREFIX = "kubebeast."
"""Prefix of attributes that OpenTelemetry does not define."""


class StepTracer:
    """Requests a trace of one step every interval_s seconds and exports the results, while its context is open.

    It uses a thread of its own, so that errors of tracing do not affect the training.
    """

    def __init__(self, pool: "ActorPool", endpoint: str, *, interval_s: float, run_id: str) -> None:
        """`endpoint` is the base URL of the collector, which accepts spans at /v1/traces below it."""
        self._pool = pool
        self._interval_s = interval_s
        self._provider = TracerProvider(resource=_resource(run_id), shutdown_on_exit=False)
        exporter = OTLPSpanExporter(endpoint=f"{endpoint.rstrip('/')}/v1/traces")
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer = self._provider.get_tracer("kubebeast_learner", __version__)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="tracing", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        """Exports the remaining traces, for FLUSH_TIMEOUT_S at most."""
        self._stopping.set()
        self._thread.join(FLUSH_TIMEOUT_S)
        if self._thread.is_alive():
            logger.warning("the collector did not take the last traces within %g s", FLUSH_TIMEOUT_S)

    def _run(self) -> None:
        exporter_logger, complaint = logging.getLogger(EXPORTER_LOGGER), Timer(COMPLAINT_INTERVAL_S)
        complaint.hasten(0.0)

        def is_seldom(record: logging.LogRecord) -> bool:
            return complaint.is_due()

        exporter_logger.addFilter(is_seldom)
        try:
            while not self._stopping.wait(self._interval_s):
                self._record()
                self._pool.trace_next_step()
            self._record()
        except Exception:
            logger.exception("tracing ends, the training goes on")
        finally:
            self._provider.shutdown()
            exporter_logger.removeFilter(is_seldom)

    def _record(self) -> None:
        for trace in self._pool.take_step_traces():
            record_step(self._tracer, trace)


def record_step(tracer: Tracer, trace: "StepTrace") -> None:
    """Exports one trace: the span "step" with the phases of docs/traces.md below it, at the times of `trace`."""
    step = tracer.start_span("step", start_time=trace.actions_sent_ns, attributes=_attributes(trace))
    inside_step = set_span_in_context(step)
    env = tracer.start_span("env", inside_step, start_time=trace.actions_sent_ns)
    if trace.env_ns:
        wire_ns = trace.received_ns - trace.actions_sent_ns - trace.env_ns
        env.set_attribute(f"{PREFIX}wire_s", wire_ns / 1e9)
        # The clocks of two machines are not comparable: both directions are drawn with equal length.
        env_step_ns = trace.actions_sent_ns + wire_ns // 2
        env_step = tracer.start_span("env.step", set_span_in_context(env), start_time=env_step_ns)
        env_step.end(env_step_ns + trace.env_ns)
    env.end(trace.received_ns)
    for name, start_ns, end_ns in _phases(trace):
        tracer.start_span(name, inside_step, start_time=start_ns).end(end_ns)
    step.end(trace.replied_ns)


def _phases(trace: "StepTrace") -> Iterator[tuple[str, int, int]]:
    """Yields name, start and end of the phases in the learner, in order."""
    if trace.submitted_ns > trace.received_ns:
        yield "parked", trace.received_ns, trace.submitted_ns
    yield "queue", trace.submitted_ns, trace.taken_ns
    yield "inference.gather", trace.taken_ns, trace.gathered_ns
    yield "inference.model", trace.gathered_ns, trace.answered_ns
    yield "reply", trace.answered_ns, trace.replied_ns


def _attributes(trace: "StepTrace") -> dict[str, str | int]:
    names = ("env_server_id", "instance_id", "env_id", "num_envs", "step", "batch_rows", "policy_version")
    return {PREFIX + name: getattr(trace, name) for name in names}


def _resource(run_id: str) -> Resource:
    """Returns the attributes of the exporter; OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES override them."""
    own = {"service.name": "kubebeast-learner", "service.version": __version__, f"{PREFIX}run_id": run_id}
    return Resource.create(own).merge(OTELResourceDetector().detect())
