"""`kubebeast top` as a process reads the pages of a learner, directly and through the API server."""

import contextlib
import json
import os
import pty
import re
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.processes.training_process import environment, training_command
from tests.integration.fleet_api_server import api_server, write_kubeconfig
from tests.unit.observe.fleet.fleet_objects import deployment, job, labels, pod, stateful_set, warning
from tests.unit.observe.top.top_learner import Pages, metrics, old_metrics, page_server, stream, streams_page

TIMEOUT_S = 300.0
LEAVE_SCREEN = "\x1b[?1049l"
"""https://invisible-island.net/xterm/ctlseqs/ctlseqs.html, DECRST 1049"""
COMMAND = [sys.executable, "-W", "error", "-m", "kubebeast_learner", "top"]
NAMESPACE = "/api/v1/namespaces/train/pods"
DEPLOYMENTS = "/apis/apps/v1/namespaces/train/deployments"
LEARNER = f"{NAMESPACE}/kb-learner-0:9091/proxy"


def growing(page: Callable[[int], str]) -> Callable[[], str]:
    """Returns a page that gets the number of earlier requests."""
    asked = iter(range(1_000_000))
    return lambda: page(next(asked))


def streams_after(looks: int) -> str:
    """Returns the streams at ten steps of eight environments a look, 20 ms each."""
    return streams_page(stream(steps=80 * looks, env_s=0.2 * looks, action_s=0.1 * looks, connected_s=1.0 * looks))


@pytest.fixture
def learner() -> Iterator[Pages]:
    with page_server() as server:
        server.pages = {"/metrics": metrics(), "/streams": growing(streams_after)}
        yield server


@pytest.fixture
def api(learner: Pages, tmp_path: Path) -> Pages:
    """An API server with a learner and two pods of env-servers, of which one has a stream."""
    mine = labels("envserver", "kb", "envserver")
    waiting = {"waiting": {"reason": "CrashLoopBackOff"}}
    pods = [
        pod("kb-learner-0", labels("learner")),
        pod("kb-envserver-a", mine, restartCount=2),
        pod("kb-envserver-b", mine, ready=False, state=waiting),
    ]
    # Learners are listed first, env-servers second, again and again.
    learner.pages = {
        f"{LEARNER}/metrics": metrics(),
        f"{LEARNER}/streams": growing(streams_after),
        NAMESPACE: growing(
            lambda asked: json.dumps({"metadata": {}, "items": pods[:1] if asked % 2 == 0 else pods[1:]})
        ),
    }
    return learner


def variables() -> dict[str, str]:
    kept = {name: value for name, value in environment().items() if "proxy" not in name.lower()}
    return {name: value for name, value in kept.items() if not name.startswith("KUBERNETES")}


def top(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *words], env=variables(), capture_output=True, text=True, timeout=TIMEOUT_S)


def test_json_is_one_object_with_rates_between_two_looks(learner: Pages) -> None:
    done = top("--learner", learner.url, "--once", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    view: dict[str, Any] = json.loads(done.stdout)
    assert (view["run_id"], view["verdict"]["code"], view["step"]) == ("run-1", "fleet", 1000)
    (row,) = view["env_servers"]
    assert row["name"] == "kb-envserver-a" and row["env_s"] == pytest.approx(0.02) and row["steps_per_second"] > 0
    assert view["notes"] == []


def test_a_real_learner_tells_everything_that_is_shown(tmp_path: Path) -> None:
    flags = ("--http-address=127.0.0.1:0", "--total-steps=1000000000")
    with subprocess.Popen(
        training_command("train", tmp_path, *flags),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment(),
    ) as training:
        try:
            port = wait_for(training, r"serving .* on port (\d+)")
            wait_for(training, r'"step": ([1-9]\d{2,})')
            view = view_of_steps(f"http://127.0.0.1:{port}")
        finally:
            training.terminate()
            training.communicate(timeout=TIMEOUT_S)
    assert {name for name, value in view.items() if value is None} <= {"checkpoint_age_s", "episode_return_mean"}
    assert (view["run_id"], view["notes"], view["troubles"]) == ("run", [], {})
    assert view["inference_model"]["p99_s"] >= view["inference_model"]["p50_s"] > 0
    assert [
        (row["name"], row["env_id"], row["envs"]) for row in sorted(view["env_servers"], key=lambda r: r["name"])
    ] == [
        ("local-0", "CartPole-v1", 2),
        ("local-1", "CartPole-v1", 2),
    ]
    for row in view["env_servers"]:
        assert row["env_s"] > 0 and row["action_wait_s"] > 0


def view_of_steps(url: str) -> dict[str, Any]:
    """Returns the first view in which every env-server stepped between the looks: on a busy machine one may not."""
    while True:
        done = top("--learner", url, "--once", "--json")
        assert (done.returncode, done.stderr) == (0, "")
        view: dict[str, Any] = json.loads(done.stdout)
        if all(row["steps_per_second"] and row["env_s"] is not None for row in view["env_servers"]):
            return view


def wait_for(process: subprocess.Popen[str], pattern: str) -> str:
    """Returns the first group of the next line of output with the pattern."""
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(line)
        if match := re.search(pattern, line):
            return match[1]
    raise AssertionError(f"the process ended without {pattern}: {''.join(lines)}")


def test_one_view_goes_to_a_file_without_colours(learner: Pages) -> None:
    done = top("--learner", learner.url, "--once")
    assert (done.returncode, done.stderr) == (0, "") and "\x1b" not in done.stdout
    assert "kb-envserver-a" in done.stdout and "the fleet starves the learner" in done.stdout


def test_a_learner_without_streams_is_shown_with_a_note(learner: Pages) -> None:
    learner.pages = {"/metrics": old_metrics()}
    done = top("--learner", learner.url, "--once")
    assert done.returncode == 0 and "does not report its streams" in done.stdout


def test_streams_that_make_no_sense_are_a_note(learner: Pages) -> None:
    learner.pages["/streams"] = "{"
    done = top("--learner", learner.url, "--once", "--json")
    assert json.loads(done.stdout)["notes"][0].startswith("streams are unknown: /streams is not JSON")


@pytest.mark.parametrize(
    ("pages", "status", "reason"),
    [
        ({}, 200, "is not a learner: it has no /metrics"),
        ({"/metrics": "<html>"}, 200, "is not a learner: /metrics is not Prometheus's text format"),
        ({"/metrics": "kubebeast_envserver_streams_connected 1\n"}, 200, "is not a learner: it is an env-server"),
        ({"/metrics": "up 1\n"}, 200, "is not a learner: /metrics has no kubebeast_streams"),
        ({"/metrics": "x" * (9 << 20)}, 200, "/metrics is larger than 8 MiB"),
        ({"/metrics": metrics()}, 503, "/metrics answers 503"),
    ],
)
def test_what_is_no_learner_is_said_in_one_line(
    learner: Pages, pages: dict[str, Any], status: int, reason: str
) -> None:
    learner.pages, learner.status = pages, status
    done = top("--learner", learner.url, "--once")
    assert done.returncode == 1 and reason in done.stderr and len(done.stderr.splitlines()) == 1


def test_nobody_at_the_address_is_said_in_one_line() -> None:
    done = top("--learner", "http://127.0.0.1:1", "--once")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("kubebeast top: the learner http://127.0.0.1:1 cannot be reached: ")


def test_a_learner_that_never_answers_is_not_waited_for_for_ever(learner: Pages) -> None:
    learner.silent.set()
    done = top("--learner", learner.url, "--once")
    assert done.returncode == 1 and "cannot be reached: timed out" in done.stderr


def test_in_kubernetes_pods_are_told_with_their_nodes_and_restarts(api: Pages, tmp_path: Path) -> None:
    done = top("--kubeconfig", str(write_kubeconfig(tmp_path, api.url)), "--release", "kb", "--once", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    view = json.loads(done.stdout)
    assert view["source"] == "kb-learner-0 in namespace train"
    serving, broken = view["env_servers"]
    assert (serving["pod"], serving["node"], serving["restarts"]) == ("kb-envserver-a", "node1", 2)
    assert (broken["name"], broken["num_streams"], broken["phase"]) == ("kb-envserver-b", 0, "CrashLoopBackOff")


def test_a_fleet_of_no_replicas_is_told_with_the_command_that_brings_it_back(api: Pages, tmp_path: Path) -> None:
    api.pages[f"{LEARNER}/metrics"], api.pages[f"{LEARNER}/streams"] = metrics(streams=0.0), streams_page()
    api.pages[DEPLOYMENTS] = json.dumps({"metadata": {}, "items": [deployment("kb-pong", "pong", desired=0, ready=0)]})
    done = top("--kubeconfig", str(write_kubeconfig(tmp_path, api.url)), "--once")
    assert (done.returncode, done.stderr) == (0, "")
    assert "the fleet is scaled to zero" in done.stdout and "kubebeast fleet scale pong REPLICAS" in done.stdout
    assert "logs" not in done.stdout


def test_a_release_that_is_not_there_is_named_with_those_that_are(api: Pages, tmp_path: Path) -> None:
    done = top("--kubeconfig", str(write_kubeconfig(tmp_path, api.url)), "--release", "other", "--once")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "kubebeast top: release = 'other': namespace train has learners of kb\n"


def test_without_permission_the_role_that_would_help_is_printed(api: Pages, tmp_path: Path) -> None:
    api.status = 403
    done = top("--kubeconfig", str(write_kubeconfig(tmp_path, api.url)), "--once")
    assert done.returncode == 1 and "refused by the API server" in done.stderr
    assert "pods/proxy" in done.stderr


def test_on_a_terminal_keys_sort_and_q_gives_the_screen_back(learner: Pages) -> None:
    with on_a_terminal("--learner", learner.url) as (process, terminal):
        read_until(terminal, "by env")
        os.write(terminal, b"s")
        read_until(terminal, "by steps")
        os.write(terminal, b"q")
        shown = read_until(terminal, LEAVE_SCREEN)
        assert process.wait(TIMEOUT_S) == 0 and "Traceback" not in shown


def test_sigterm_gives_the_screen_back(learner: Pages) -> None:
    with on_a_terminal("--learner", learner.url) as (process, terminal):
        read_until(terminal, "by env")
        process.terminate()
        shown = read_until(terminal, LEAVE_SCREEN)
        assert process.wait(TIMEOUT_S) == 143 and "Traceback" not in shown


def test_a_learner_that_goes_away_leaves_the_last_view_with_a_note(learner: Pages) -> None:
    with on_a_terminal("--learner", learner.url) as (_, terminal):
        read_until(terminal, "by env")
        learner.pages = {}
        read_until(terminal, "not up to date")


@contextlib.contextmanager
def on_a_terminal(*words: str) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """Runs the command on a terminal of its own; yields it and the descriptor of the terminal's other side."""
    leader, follower = pty.openpty()
    with subprocess.Popen(
        [*COMMAND, *words], env=variables() | {"TERM": "xterm"}, stdin=follower, stdout=follower, stderr=follower
    ) as process:
        os.close(follower)
        try:
            yield process, leader
        finally:
            process.kill()
            os.close(leader)


def read_until(terminal: int, text: str) -> str:
    """Returns the terminal's output up to `text`, which must come within TIMEOUT_S."""
    shown, deadline_s = "", time.monotonic() + TIMEOUT_S
    while text not in shown:
        ready, _, _ = select.select([terminal], [], [], max(0.0, deadline_s - time.monotonic()))
        assert ready, f"{text!r} did not come: {shown[-2000:]!r}"
        shown += os.read(terminal, 1 << 16).decode("utf-8", errors="replace")
    return shown


STATEFUL_SETS = "/apis/apps/v1/namespaces/train/statefulsets"
JOBS = "/apis/batch/v1/namespaces/train/jobs"
EVENTS = "/api/v1/namespaces/train/events"


def listed(*items: dict[str, Any]) -> str:
    return json.dumps({"metadata": {}, "items": items})


def top_of_the_cluster(api: Pages, tmp_path: Path) -> subprocess.CompletedProcess[str]:
    return top("--kubeconfig", str(write_kubeconfig(tmp_path, api.url)), "--once")


def test_a_paused_release_is_called_paused(api: Pages, tmp_path: Path) -> None:
    paused = stateful_set("kb-learner", desired=0, current=0)
    api.pages |= {"/api/v1/namespaces/train": "{}", NAMESPACE: listed(), STATEFUL_SETS: listed(paused)}
    done = top_of_the_cluster(api, tmp_path)
    assert done.returncode == 1 and "release kb is paused" in done.stderr and "no learner" not in done.stderr


def test_a_learner_that_has_completed_its_run_is_called_that(api: Pages, tmp_path: Path) -> None:
    ended = pod(
        "kb-learner-1", labels("learner"), ready=False, state={"terminated": {"exitCode": 0, "reason": "Completed"}}
    )
    ended["status"]["phase"] = "Succeeded"
    api.pages |= {NAMESPACE: listed(ended), JOBS: listed(job("kb-learner-1", ended="Complete"))}
    done = top_of_the_cluster(api, tmp_path)
    assert "it is Completed: the training of release kb is complete: job kb-learner-1" in done.stderr


def test_a_learner_that_may_not_be_created_is_missed_with_the_reason(api: Pages, tmp_path: Path) -> None:
    refused = warning("StatefulSet", "kb-learner", "FailedCreate", "exceeded quota: small")
    api.pages |= {
        "/api/v1/namespaces/train": "{}",
        NAMESPACE: listed(),
        STATEFUL_SETS: listed(stateful_set("kb-learner", current=0)),
        EVENTS: listed(refused),
    }
    done = top_of_the_cluster(api, tmp_path)
    assert "namespace train has no learner; statefulset kb-learner: FailedCreate: exceeded quota: small" in done.stderr


def test_a_learner_on_a_lost_node_is_named_with_the_remedy(tmp_path: Path) -> None:
    learner = pod("kb-learner-0", labels("learner"))
    learner["metadata"]["deletionTimestamp"] = "2026-01-01T00:01:00Z"
    with api_server() as server:
        server.pods = [learner]
        done = top("--kubeconfig", str(server.kubeconfig(tmp_path)), "--once")
    assert done.returncode == 1 and "its node node1 does not answer" in done.stderr
    assert "out-of-service=nodeshutdown:NoExecute" in done.stderr


def test_what_keeps_env_servers_from_running_stands_below(api: Pages, tmp_path: Path) -> None:
    waiting = {"waiting": {"reason": "ErrImagePull", "message": "no such image"}}
    broken = pod("kb-envserver-c", labels("envserver", "kb", "envserver"), ready=False, state=waiting)
    learner = pod("kb-learner-0", labels("learner"))
    api.pages[NAMESPACE] = growing(lambda asked: listed(learner) if asked % 2 == 0 else listed(broken))
    done = top_of_the_cluster(api, tmp_path)
    assert "pod kb-envserver-c: ErrImagePull: no such image" in done.stdout
