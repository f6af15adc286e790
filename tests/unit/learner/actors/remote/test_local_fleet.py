"""Env-server processes start, are replaced if they die, and never outlive the learner."""

import errno
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from kubebeast_envserver.config import parse
from kubebeast_learner.actors.base import ACTOR_FAULTS
from kubebeast_learner.actors.remote import local_fleet
from kubebeast_learner.actors.remote.local_fleet import FleetError, LocalFleet, dialable
from kubebeast_learner.config import LocalFleetConfig
from tests.child_processes import ENV_SERVER, children

WAIT_S = 300


@dataclass
class Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


def make_fleet(
    folder: Path,
    clock: Clock | None = None,
    env: str = "Mock",
    *,
    num_actors: int = 1,
    num_servers: int = 1,
    serves_metrics: bool = False,
    version: int = 0,
    tasks: Sequence[str] = (),
    run: str = "",
    group_size: int | None = None,
) -> LocalFleet:
    """Returns a fleet of env-servers that dial an address without a listener."""
    return LocalFleet(
        LocalFleetConfig(env=env, num_actors=num_actors, num_servers=num_servers),
        address=f"unix:{folder}/nobody.sock",
        seed=1,
        version=version,
        log_path=folder / "env-servers.log",
        run=run,
        tasks=tasks,
        serves_metrics=serves_metrics,
        group_size=group_size,
        clock=clock or Clock(),
    )


def servers() -> list[psutil.Process]:
    return children(os.getpid(), ENV_SERVER)


def kill_server() -> None:
    """Returns once the process is dead; its parent still collects the status."""
    (process,) = servers()
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)


def metrics(target: str) -> str:
    """Returns the metrics page of a newly started env-server once it answers."""
    deadline = time.monotonic() + WAIT_S
    while True:
        try:
            with urllib.request.urlopen(f"http://{target}/metrics", timeout=WAIT_S) as response:
                return str(response.read().decode())
        except urllib.error.URLError:
            assert time.monotonic() < deadline, f"nobody answers on {target}"
            time.sleep(0.05)


def value(arguments: list[str], name: str) -> str:
    return next(argument.split("=", 1)[1] for argument in arguments if argument.startswith(f"--{name}="))


def test_environments_are_spread_evenly(tmp_path: Path) -> None:
    fleet = make_fleet(tmp_path, num_actors=8, num_servers=3)
    assert [value(fleet.arguments(index), "envs-per-stream") for index in range(3)] == ["3", "3", "2"]


@pytest.mark.parametrize(("num_servers", "streams"), [(1, [6]), (4, [2, 2, 1, 1]), (9, [1] * 6)])
def test_each_group_is_a_stream_with_the_same_seeds_whatever_the_number_of_processes(
    num_servers: int, streams: list[int], tmp_path: Path
) -> None:
    fleet = make_fleet(tmp_path, num_actors=12, num_servers=num_servers, group_size=2)
    first_seed = int(value(make_fleet(tmp_path, num_actors=12, group_size=2).arguments(0), "seed"))
    first = 0
    for index, count in enumerate(streams):
        arguments = fleet.arguments(index)
        assert value(arguments, "num-streams") == str(count) and value(arguments, "envs-per-stream") == "2"
        assert int(value(arguments, "seed")) == first_seed + 2 * first
        assert fleet.first_group(f"local-{index}") == first
        assert value(fleet.arguments(index, 1), "seed") != value(arguments, "seed")
        first += count


def test_env_servers_serve_their_own_run_whatever_the_environment_of_the_learner_says(tmp_path: Path) -> None:
    assert value(make_fleet(tmp_path, run="pong").arguments(0), "run") == "pong"
    assert value(make_fleet(tmp_path).arguments(0), "run") == ""


def test_every_process_and_every_restart_has_its_own_seed_and_runs_repeat_them(tmp_path: Path) -> None:
    first, again = (make_fleet(tmp_path, num_actors=3, num_servers=3) for _ in range(2))
    seeds = [value(first.arguments(index, starts), "seed") for index in range(3) for starts in range(3)]
    assert len(set(seeds)) == 9 and all(0 <= int(seed) < 2**30 for seed in seeds)
    assert value(again.arguments(2, 1), "seed") == value(first.arguments(2, 1), "seed")


def test_a_resumed_run_plays_other_episodes(tmp_path: Path) -> None:
    fresh, resumed = make_fleet(tmp_path), make_fleet(tmp_path, version=250)
    assert value(fresh.arguments(0), "seed") != value(resumed.arguments(0), "seed")


@pytest.mark.parametrize(
    ("bound", "dialed"),
    [
        ("0.0.0.0:4431", "127.0.0.1:4431"),
        ("[::]:4431", "[::1]:4431"),
        ("10.1.2.3:4431", "10.1.2.3:4431"),
        ("unix:/tmp/a.sock", "unix:/tmp/a.sock"),
    ],
)
def test_wildcard_addresses_are_dialed_on_loopback(bound: str, dialed: str) -> None:
    assert dialable(bound) == dialed


def test_every_env_server_serves_its_metrics_where_the_targets_say(tmp_path: Path) -> None:
    with make_fleet(tmp_path, num_actors=2, num_servers=2, serves_metrics=True) as fleet:
        targets = fleet.targets()
        assert [target["labels"]["pod"] for target in targets] == ["local-0", "local-1"]
        assert len({address for target in targets for address in target["targets"]}) == 2
        for target in targets:
            assert "kubebeast_envserver_env_steps_total" in metrics(*target["targets"])


def test_the_port_of_an_env_servers_metrics_is_held_while_no_env_server_has_it(tmp_path: Path) -> None:
    clock = Clock()
    with make_fleet(tmp_path, clock, serves_metrics=True) as fleet:
        ((target,),) = [found["targets"] for found in fleet.targets()]
        kill_server()
        fleet.check()
        assert is_taken(target)
        clock.now = 1.0
        fleet.check()
        assert "kubebeast_envserver_env_steps_total" in metrics(target)


def test_the_ports_of_metrics_are_given_back(tmp_path: Path) -> None:
    with make_fleet(tmp_path, serves_metrics=True) as fleet:
        ((target,),) = [found["targets"] for found in fleet.targets()]
        assert is_taken(target)
    assert not is_taken(target)


def is_taken(target: str) -> bool:
    """Returns True if the kernel assigns the port to no other server and to no connection as its local port."""
    host, _, port = target.rpartition(":")
    with socket.socket() as other:
        try:
            other.bind((host, int(port)))
        except OSError as error:
            return error.errno == errno.EADDRINUSE
    return False


def test_an_env_server_that_serves_no_metrics_does_not_take_the_learners_port(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBEBEAST_HTTP_ADDRESS", "127.0.0.1:9090")
    fleet = make_fleet(tmp_path)
    assert fleet.targets() == []
    assert parse(fleet.arguments(0)).http_address == ""


def test_processes_run_inside_and_are_gone_outside(tmp_path: Path) -> None:
    with make_fleet(tmp_path, num_actors=2, num_servers=2):
        running = servers()
        assert len(running) == 2
    assert not any(process.is_running() for process in running)


def test_a_process_that_does_not_end_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_fleet, "STOP_GRACE_S", 0.0)
    with make_fleet(tmp_path):
        (process,) = servers()
        process.suspend()
    assert not process.is_running()


def test_a_dead_process_is_replaced_after_its_back_off(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    with make_fleet(tmp_path, clock) as fleet:
        kill_server()
        fleet.check()
        fleet.check()
        assert servers() == [] and fleet.num_restarts == 0
        assert "local-0 ended with status -9; restarting it in 0." in caplog.text
        clock.now = 1.0
        fleet.check()
        assert len(servers()) == 1 and fleet.num_restarts == 1


def test_a_process_that_keeps_dying_ends_the_run(tmp_path: Path) -> None:
    clock = Clock()
    with make_fleet(tmp_path, clock) as fleet:
        for _ in range(ACTOR_FAULTS.max_failures - 1):
            kill_server()
            fleet.check()
            clock.now += 1.0
            fleet.check()
        kill_server()
        with pytest.raises(FleetError, match="ended with status -9"):
            fleet.check()
        assert fleet.num_restarts == ACTOR_FAULTS.max_failures - 1


def test_an_unknown_environment_ends_the_run_at_once_with_the_reason(tmp_path: Path) -> None:
    with make_fleet(tmp_path, env="NoSuchGame-v0") as fleet:
        (process,) = servers()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        with pytest.raises(FleetError, match=r"ended with status 2 \(output in .*\):\nenv = 'NoSuchGame-v0': .*$"):
            fleet.check()


def test_an_environment_that_cannot_be_made_ends_the_run_at_once_with_the_reason(tmp_path: Path) -> None:
    with make_fleet(tmp_path, env="tests.integration.envserver_faults:CannotBeMade-v0") as fleet:
        reason = r"could not be made: OSError: no licence file \(envserver_faults\.py, line \d+\)"
        (process,) = servers()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        with pytest.raises(
            FleetError, match=rf"ended with status 2 \(output in .*\):\n.*{reason}\nstream 0 is given up$"
        ):
            fleet.check()


def test_processes_end_when_the_learner_is_killed(tmp_path: Path) -> None:
    code = f"""
import signal, psutil
from pathlib import Path
from tests.unit.learner.actors.remote.test_local_fleet import make_fleet, servers
with make_fleet(Path({str(tmp_path)!r})):
    print(servers()[0].pid, flush=True)
    signal.pause()
"""
    root = Path(__file__).resolve().parents[5]
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, cwd=root) as learner:
        assert learner.stdout is not None
        server = psutil.Process(int(learner.stdout.readline()))
        learner.send_signal(signal.SIGKILL)
    server.wait(WAIT_S)
    assert not server.is_running()


def test_processes_play_the_tasks_in_turn(tmp_path: Path) -> None:
    fleet = make_fleet(tmp_path, num_actors=5, num_servers=3, tasks=("Fast-v0", "Slow-v0"))
    assert [parse(fleet.arguments(index)).env for index in range(3)] == ["Fast-v0", "Slow-v0", "Fast-v0"]
