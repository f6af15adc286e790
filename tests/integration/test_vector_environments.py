"""A vector that fails as a whole is made again, in a new stream, and no step is lost from the books."""

import json
import signal
from pathlib import Path

import pytest

from harness.chaos.books import imbalance
from harness.processes.training_process import command, rows, run
from kubebeast_envserver.stream.exit_code import ExitCode
from tests.integration.envserver_learner import running, wait_for_log
from tests.integration.playing_pool import WELL_SPEC, PlayingPool

VECTOR = "tests.integration.envserver_faults:vector/WearsOut-v0"
LASTS, NUM_ENVS = 30, 2
NUM_LIVES = 3


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_a_vector_that_fails_plays_again_and_the_books_balance(mode: str) -> None:
    kwargs = json.dumps({"lasts": LASTS, "vectorization_mode": mode})
    flags = [f"--env={VECTOR}", f"--env-kwargs={kwargs}", f"--envs-per-stream={NUM_ENVS}"]
    with PlayingPool(WELL_SPEC) as pool, running(*flags, f"--address={pool.address}") as process:
        pool.play_until(lambda: pool.stat("streams_accepted") == NUM_LIVES)
        wait_for_log(process, "the environments failed together")
        process.send_signal(signal.SIGTERM)
        pool.play_until(lambda: process.poll() is not None and not pool.stat("streams"))
        assert process.returncode == ExitCode.OK
        stats = pool.native.stats()
        assert (imbalance(stats), stats["streams_ended_bye"]) == (0, NUM_LIVES)
        assert stats["steps_sampled"] >= (NUM_LIVES - 1) * LASTS * NUM_ENVS


@pytest.mark.slow
@pytest.mark.parametrize("name", ["train", "mono"])
def test_environments_of_a_vector_may_have_processes_of_their_own(name: str, tmp_path: Path) -> None:
    processes = {"train": "--num-servers=1", "mono": "--num-actor-processes=1"}[name]
    flags = ["--env=vector/CartPole-v1", '--env-kwargs={"vectorization_mode": "async"}', "--recipe=none", processes]
    size = ["--num-actors=2", "--unroll-length=5", "--batch-size=2", "--total-steps=200", "--compile=off"]
    process = run(command(name, *flags, *size, f"--savedir={tmp_path}", "--xpid=run"))
    assert process.returncode == 0, process.stderr
    assert int(rows(tmp_path / "run")[-1]["step"]) >= 200
