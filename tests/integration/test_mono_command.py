"""`kubebeast mono` has actor processes of its own, and needs neither gRPC nor native code."""

import contextlib
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from harness.processes.training_process import TIMEOUT_S, environment, rows, run, snapshots, training_command
from tests.child_processes import SPAWNED, children

WITHOUT_NATIVE_CODE = """
import sys
for name in ("grpc", "kubebeast_native", "kubebeast_protos"):
    sys.modules[name] = None  # an import of it raises
from kubebeast_common.cli.main import main
if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
"""

FAILING_ENVIRONMENTS = """
import os
import threading
import time
import gymnasium
from gymnasium.envs.classic_control import CartPoleEnv

class Failing(CartPoleEnv):
    def step(self, action):
        threading.Thread(target=threading.Event().wait).start()  # the process cannot end by itself
        raise RuntimeError("the pole is gone")

class Flaky(CartPoleEnv):
    def step(self, action):
        if self.np_random.random() < 0.02:
            raise RuntimeError("the pole is gone")
        return super().step(action)

class FailsWhereItIsLong(CartPoleEnv):
    def reset(self, **kwargs):
        self.steps, self.lasts = 0, 9 if self.np_random.random() < 0.25 else 4
        return super().reset(**kwargs)

    def step(self, action):
        self.steps += 1
        if self.steps == 6:
            raise RuntimeError("the pole is gone")
        observation, reward, _, _, info = super().step(action)
        return observation, reward, self.steps == self.lasts, False, info

class Exits(CartPoleEnv):
    def __init__(self, **kwargs):
        os._exit(0)

class Sleeps(CartPoleEnv):
    def __init__(self, **kwargs):
        time.sleep(600)

class Threaded(CartPoleEnv):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        os.write(1, b"no JSON\\n")
        threading.Thread(target=threading.Event().wait).start()

gymnasium.register("FailsWhereItIsLong-v0", entry_point=FailsWhereItIsLong)
gymnasium.register("Exits-v0", entry_point=Exits)
gymnasium.register("Sleeps-v0", entry_point=Sleeps)
gymnasium.register("Threaded-v0", entry_point=Threaded)
gymnasium.register("Failing-v0", entry_point=Failing)
gymnasium.register("Flaky-v0", entry_point=Flaky)
"""


@contextlib.contextmanager
def endless_run(savedir: Path) -> Iterator[subprocess.Popen[str]]:
    words = training_command("mono", savedir, "--total-steps=100000000")
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment()
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def next_snapshot(process: subprocess.Popen[str]) -> dict[str, int]:
    assert process.stdout is not None
    snapshot: dict[str, int] = json.loads(process.stdout.readline())
    return snapshot


def actors_of(process: subprocess.Popen[str]) -> list[psutil.Process]:
    return children(process.pid, SPAWNED)


def test_mono_trains_without_grpc_and_native_code(tmp_path: Path) -> None:
    script = tmp_path / "mono.py"
    script.write_text(WITHOUT_NATIVE_CODE)
    words = training_command("mono", tmp_path, "--total-steps=500")
    process = run([sys.executable, str(script), *words[words.index("mono") :]])
    assert process.returncode == 0, process.stderr
    assert snapshots(process.stdout)[-1]["step"] >= 500


def test_a_killed_actor_process_is_replaced_and_training_goes_on(tmp_path: Path) -> None:
    with endless_run(tmp_path) as process:
        while next_snapshot(process)["step"] == 0:
            pass
        actors_of(process)[0].kill()
        while (snapshot := next_snapshot(process))["actor_restarts"] == 0 or snapshot["streams"] < 2:
            pass
        step = snapshot["step"]
        while next_snapshot(process)["step"] <= step + 1000:
            pass


@pytest.mark.parametrize(("num_processes", "flag", "most"), [(1, "", 1.0), (2, "--wait-for-updates", 0.0)])
def test_data_are_at_most_one_update_old_if_updates_are_slow(
    num_processes: int, flag: str, most: float, tmp_path: Path
) -> None:
    size = ["--num-actors=4", "--unroll-length=32", "--batch-size=4", f"--num-actor-processes={num_processes}"]
    size += [flag] if flag else []
    process = run(training_command("mono", tmp_path, *size, "--passes=10", "--minibatches=8", "--total-steps=5000"))
    assert process.returncode == 0, process.stderr
    lags = [float(row["policy_lag"]) for row in rows(tmp_path / "run") if row["policy_lag"]]
    assert lags and max(lags) <= most


def test_actor_processes_end_with_a_killed_learner(tmp_path: Path) -> None:
    with endless_run(tmp_path) as process:
        while next_snapshot(process)["step"] == 0:
            pass
        actors = actors_of(process)
        assert len(actors) == 2
        process.send_signal(signal.SIGKILL)
        process.wait(TIMEOUT_S)
        _, alive = psutil.wait_procs(actors, timeout=TIMEOUT_S)
    assert alive == []


def play_in(savedir: Path, env: str, *flags: str) -> subprocess.CompletedProcess[str]:
    (savedir / "failing.py").write_text(FAILING_ENVIRONMENTS)
    words = training_command("mono", savedir, f"--env=failing:{env}-v0", "--recipe=none", "--model=mlp", *flags)
    return run(words, PYTHONPATH=str(savedir))


def messages(lines: str) -> list[str]:
    return [json.loads(line)["message"] for line in lines.splitlines() if line.startswith("{")]


def test_an_environment_that_never_works_ends_the_run_at_once_with_its_reason(tmp_path: Path) -> None:
    process = play_in(tmp_path, "Failing")
    assert process.returncode == 1
    message = messages(process.stderr)[-1]
    assert "every environment failed too often" in message
    assert message.endswith("step raised RuntimeError: the pole is gone (failing.py, line 11)")
    assert "restarting" not in process.stderr


def test_an_environment_that_fails_now_and_then_is_logged_and_training_goes_on(tmp_path: Path) -> None:
    process = play_in(tmp_path, "Flaky", "--total-steps=500")
    assert process.returncode == 0, process.stderr
    text = "failed (exception) and is created again: step raised RuntimeError: the pole is gone (failing.py, line 16)"
    for log in (process.stderr, (tmp_path / "run" / "actors.log").read_text()):
        assert any(message.endswith(text) for message in messages(log))
    assert snapshots(process.stdout)[-1]["env_failures"] > 0
    assert int(rows(tmp_path / "run")[-1]["env_failures"]) > 0


def test_returns_of_the_episodes_that_end_well_are_told_of_as_what_they_are(tmp_path: Path) -> None:
    process = play_in(tmp_path, "FailsWhereItIsLong", "--total-steps=400", "--num-actors=8")
    assert process.returncode == 0, process.stderr
    last = snapshots(process.stdout)[-1]
    assert last["mean_episode_return"] <= 5 and last["env_failures"] > last["episodes"] / 10
    assert [text for text in messages(process.stderr) if "the mean return is of the others alone" in text] != []
    assert "which are in no mean, were cut short as their environments failed" in process.stderr


def test_more_unrolls_than_shared_memory_holds_are_refused(tmp_path: Path) -> None:
    process = run(training_command("mono", tmp_path, "--num-buffers=1000000000"))
    assert process.returncode == 2
    assert "lower num_actors, num_buffers or unroll_length" in process.stderr


@pytest.mark.parametrize(
    ("env", "says"),
    [("Exits", "ended with status 0"), ("Sleeps", "took more than env_timeout_s = 1 s")],
)
def test_a_constructor_that_takes_its_process_with_it_ends_the_run_with_a_reason(
    tmp_path: Path, env: str, says: str
) -> None:
    process = play_in(tmp_path, env, "--env-timeout-s=1")
    assert process.returncode == 1
    assert [message for message in messages(process.stderr) if says in message]


def test_what_an_environment_starts_and_prints_stays_in_its_process(tmp_path: Path) -> None:
    process = play_in(tmp_path, "Threaded", "--total-steps=500")
    assert process.returncode == 0, process.stderr
    assert snapshots(process.stdout)[-1]["step"] >= 500
