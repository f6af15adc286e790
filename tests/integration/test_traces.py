"""`kubebeast train` sends OpenTelemetry traces that a collector can read."""

import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, Span

from harness.ports import free_address
from harness.processes.training_process import run, training_command, was_successful

PHASES = ["env", "queue", "inference.gather", "inference.model", "reply"]


class Collector(http.server.ThreadingHTTPServer):
    """Takes spans by OTLP (https://opentelemetry.io/docs/specs/otlp/#otlphttp-request) and keeps them."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.received: list[ResourceSpans] = []
        self.callers: set[tuple[str, str]] = set()
        """Path and authorization of each request."""
        self.endpoint = f"http://127.0.0.1:{self.server_port}"

    def traces(self) -> list[dict[str, Span]]:
        """Returns the spans of each trace by their names."""
        traces: dict[bytes, dict[str, Span]] = {}
        for resource in self.received:
            for scope in resource.scope_spans:
                for span in scope.spans:
                    traces.setdefault(span.trace_id, {})[span.name] = span
        return list(traces.values())


class _Handler(http.server.BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.callers.add((self.path, self.headers["Authorization"]))
        self.server.received.extend(ExportTraceServiceRequest.FromString(body).resource_spans)
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def collector() -> Iterator[Collector]:
    with Collector() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def attributes(message: Span | ResourceSpans) -> dict[str, str | int | float]:
    pairs = message.resource.attributes if isinstance(message, ResourceSpans) else message.attributes
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value") or "") for pair in pairs}


def test_a_collector_sees_where_the_time_of_a_step_goes(tmp_path: Path) -> None:
    with collector() as server:
        flags = [f"--trace-endpoint={server.endpoint}/", "--trace-interval-s=0.05", "--total-steps=4000"]
        variables = {
            "OTEL_EXPORTER_OTLP_HEADERS": "authorization=Bearer%20secret",
            "OTEL_RESOURCE_ATTRIBUTES": "deployment.environment.name=test",
        }
        process = run(training_command("train", tmp_path, *flags), NO_PROXY="127.0.0.1", **variables)
        assert process.returncode == 0, process.stderr

        assert server.callers == {("/v1/traces", "Bearer secret")}
        resource = attributes(server.received[0])
        assert resource["deployment.environment.name"] == "test"
        assert (resource["service.name"], resource["kubebeast.run_id"]) == ("kubebeast-learner", "run")
        assert resource["service.version"]
        traces = server.traces()
        assert len(traces) >= 2
        for trace in traces:
            check(trace)


def check(trace: dict[str, Span]) -> None:
    """Asserts the form of a trace: phases in order and without gaps, inside "step"; "env.step" inside "env"."""
    step = trace["step"]
    assert step.parent_span_id == b""
    about = attributes(step)
    assert about["kubebeast.env_id"] == "CartPole-v1"
    assert about["kubebeast.num_envs"] == 2
    assert about["kubebeast.batch_rows"] in (2, 4)
    assert about["kubebeast.env_server_id"] and about["kubebeast.instance_id"]
    step_number, version = about["kubebeast.step"], about["kubebeast.policy_version"]
    assert isinstance(step_number, int) and step_number >= 1
    assert isinstance(version, int) and version >= 0

    names = [PHASES[0], *(["parked"] if "parked" in trace else []), *PHASES[1:]]
    assert set(trace) == {"step", "env.step", *names}
    at_ns = step.start_time_unix_nano
    for name in names:
        span = trace[name]
        assert span.parent_span_id == step.span_id
        assert span.start_time_unix_nano == at_ns
        at_ns = span.end_time_unix_nano
        assert at_ns >= span.start_time_unix_nano
    assert at_ns == step.end_time_unix_nano

    env, env_step = trace["env"], trace["env.step"]
    assert env_step.parent_span_id == env.span_id
    assert env.start_time_unix_nano <= env_step.start_time_unix_nano < env_step.end_time_unix_nano
    assert env_step.end_time_unix_nano <= env.end_time_unix_nano
    env_ns = env.end_time_unix_nano - env.start_time_unix_nano
    env_step_ns = env_step.end_time_unix_nano - env_step.start_time_unix_nano
    assert attributes(env)["kubebeast.wire_s"] == (env_ns - env_step_ns) / 1e9


def test_a_collector_that_is_not_there_disturbs_no_training(tmp_path: Path) -> None:
    flags = [f"--trace-endpoint=http://{free_address()}", "--trace-interval-s=0.05", "--total-steps=2000"]
    process = run(training_command("train", tmp_path, *flags), NO_PROXY="127.0.0.1")

    assert process.returncode == 0, process.stderr
    assert was_successful(tmp_path / "run")
    assert process.stderr.count("encountered while exporting spans batch") == 1
