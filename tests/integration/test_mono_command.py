"""What is peculiar to `kubebeast mono`: its actor processes, and that it needs neither gRPC nor native code."""

import contextlib
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.integration.training_process import TIMEOUT_S, environment, run, snapshots, training_command

pytestmark = [pytest.mark.slow, pytest.mark.timeout(2 * TIMEOUT_S)]

WITHOUT_NATIVE_CODE = """
import sys
for name in ("grpc", "kubebeast_native", "kubebeast_protos"):
    sys.modules[name] = None  # an import of it raises
from kubebeast_learner.cli import main
if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
"""

FAILING_ENVIRONMENT = """
import threading
import gymnasium
from gymnasium.envs.classic_control import CartPoleEnv

class Failing(CartPoleEnv):
    def step(self, action):
        threading.Thread(target=threading.Event().wait).start()  # the process cannot end by itself
        raise RuntimeError("the pole is gone")

gymnasium.register("Failing-v0", entry_point=Failing)
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
    return [child for child in psutil.Process(process.pid).children() if "spawn_main" in " ".join(child.cmdline())]


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


def test_an_environment_that_fails_ends_the_run_with_its_reason(tmp_path: Path) -> None:
    (tmp_path / "failing.py").write_text(FAILING_ENVIRONMENT)
    words = training_command("mono", tmp_path, "--env=failing:Failing-v0", "--recipe=none", "--model=mlp")
    process = run(words, PYTHONPATH=str(tmp_path))
    assert process.returncode == 1
    assert "the pole is gone" in process.stderr
    assert "the pole is gone" in (tmp_path / "run" / "actors.log").read_text()


def test_more_unrolls_than_shared_memory_holds_are_refused(tmp_path: Path) -> None:
    process = run(training_command("mono", tmp_path, "--num-buffers=1000000000"))
    assert process.returncode == 2
    assert "lower num_actors, num_buffers or unroll_length" in process.stderr
