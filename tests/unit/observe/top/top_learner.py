"""Pages of a learner's HTTP port, for the tests of `kubebeast top`."""

import contextlib
import json
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import unquote

from tests.http_server import StatefulServer, serving

BOUNDS = ("0.001", "0.01", "0.1", "+Inf")


def stream(env_server_id: str = "kb-envserver-a", peer: str = "ipv4:10.0.0.7:41234", **changes: Any) -> dict[str, Any]:
    values: dict[str, Any] = {
        "env_server_id": env_server_id,
        "instance_id": "1",
        "env_id": "Catch-v0",
        "peer": peer,
        "num_envs": 8,
        "phase": "env",
        "connected_s": 100.0,
        "steps": 8000,
        "episodes": 12,
        "env_s": 20.0,
        "action_s": 10.0,
        "parked_s": 0.0,
    }
    return values | changes


def streams_page(*streams: dict[str, Any]) -> str:
    return json.dumps({"run_id": "run-1", "streams": list(streams)})


def ranks_page(*ranks: dict[str, Any]) -> str:
    """Returns the page of learners that differ in these values from one with two streams."""
    alike = {"streams": 2, "envs": 16, "sps": 250.0, "learner_queue_size": 3, "empty_shares": 0}
    return json.dumps({"ranks": [alike | rank for rank in ranks]})


def histogram(name: str, counts: tuple[int, ...], labels: str = "") -> str:
    """Returns a histogram with cumulative counts for BOUNDS."""
    comma = "," if labels else ""
    buckets = [
        f'{name}_bucket{{{labels}{comma}le="{bound}"}} {count}\n' for bound, count in zip(BOUNDS, counts, strict=True)
    ]
    return f"# TYPE {name} histogram\n{''.join(buckets)}{name}_count{{{labels}}} {counts[-1]}\n"


def old_metrics(**gauges: float) -> str:
    """Returns the page of an older learner with few metrics."""
    values = {"streams": 2.0, "learner_step": 1000.0, "learner_total_steps": 5000.0} | gauges
    return "".join(f"# TYPE kubebeast_{name} gauge\nkubebeast_{name} {value}\n" for name, value in values.items())


def metrics(step: float = 1000, batches: int = 0, cpu_used_s: float = 0.0, **gauges: float) -> str:
    """Returns the page of a learner with all metrics that `kubebeast top` shows, except those of GPUs."""
    values = {
        "learner_step": step,
        "learner_steps_per_second": 500.0,
        "episode_return_mean": 21.5,
        "learner_starved_ratio": 0.5,
        "inference_busy_ratio": 0.25,
        "streams_parked": 0.0,
        "envs": 16.0,
        "slots": 64.0,
        "rollouts_queued": 3.0,
        "rollout_queue_capacity": 6.0,
        "policy_lag_updates": 1.5,
        "rho_clipped_ratio": 0.125,
        "policy_entropy_nats": 0.75,
        "checkpoint_age_seconds": 61.0,
        "machine_cpus": 4.0,
    }
    return (
        old_metrics(**(values | gauges))
        + "# TYPE kubebeast_run info\n"
        + 'kubebeast_run_info{run_id="run-1"} 1\n'
        + "# TYPE kubebeast_steps counter\n"
        + 'kubebeast_steps_total{outcome="delivered"} 900\nkubebeast_steps_total{outcome="dropped_stale"} 40\n'
        + 'kubebeast_steps_total{outcome="dropped_partial"} 2\n'
        + "# TYPE kubebeast_updates_skipped counter\nkubebeast_updates_skipped_total 1\n"
        + f"# TYPE kubebeast_machine_cpu_seconds counter\nkubebeast_machine_cpu_seconds_total {cpu_used_s}\n"
        + f"# TYPE kubebeast_inference_batches counter\nkubebeast_inference_batches_total {batches}\n"
        + f"# TYPE kubebeast_inference_rows counter\nkubebeast_inference_rows_total {12 * batches}\n"
        + histogram("kubebeast_inference_queue_wait_seconds", (0, batches, batches, batches))
        + histogram("kubebeast_inference_seconds", (batches, batches, batches, batches), 'phase="model"')
        + histogram("kubebeast_inference_seconds", (0, 0, 0, batches), 'phase="gather"')
    )


@dataclass
class Pages:
    """The served pages; may change between two requests."""

    url: str
    pages: dict[str, str | Callable[[], str]] = field(default_factory=dict)
    """Text by path without its query; other paths are answered with 404."""
    status: int = 200
    """Status of existing pages."""
    silent: threading.Event = field(default_factory=threading.Event)
    """If set, requests wait until the server ends."""
    stopped: threading.Event = field(default_factory=threading.Event)


def page_server() -> AbstractContextManager[Pages]:
    return serving(_Handler, Pages)


class _Handler(BaseHTTPRequestHandler):
    server: StatefulServer[Pages]

    def do_GET(self) -> None:
        state = self.server.state
        if state.silent.is_set():
            state.stopped.wait(60)
            return
        page = state.pages.get(unquote(self.path.partition("?")[0]))
        text = "there is nothing" if page is None else page if isinstance(page, str) else page()
        body = text.encode()
        self.send_response(404 if page is None else state.status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        with contextlib.suppress(OSError):  # a client may stop reading
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        pass
