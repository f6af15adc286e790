"""`--lag`: two runs with one seed are the same, digit by digit, whatever the number of processes and the load."""

import contextlib
from pathlib import Path

import pytest

from checks.flaky import busy_loops
from harness.processes.training_process import command, rows, run

OF_TIME_OR_MACHINE = {
    *("elapsed_s", "sps", "starved_ratio", "inference_busy_ratio", "learner_queue_size", "rows_per_inference"),
    *("_time", "streams", "envs", "checkpoint_age_s", "policy_lag", "steps_in_flight"),
}
"""Columns of durations, of the processes that have joined so far, and of unrolls that are not finished; policy_lag is a
mean over seconds."""
SETTINGS = {
    "replay": ["--env=CartPole-v1", "--recipe=vector", "--replay-share=0.5", "--passes=1", "--minibatches=1"],
    "passes": ["--env=CartPole-v1", "--recipe=vector", "--passes=2", "--minibatches=2"],
    "with memory": ["--env=kubebeast_envserver.catch:Catch-v0", "--recipe=none", "--use-lstm", "--model=mlp"],
}


def learned(program: str, savedir: Path, *flags: str, load: int = 0) -> list[dict[str, str]]:
    """Returns the rows of the log of a run, without time and machine."""
    size = ["--num-actors=12", "--batch-size=6", "--unroll-length=10", "--total-steps=3000", "--learner-threads=1"]
    words = command(program, *flags, *size, "--compile=off", "--progress=none", f"--savedir={savedir}", "--xpid=run")
    with busy_loops(load) if load else contextlib.nullcontext():
        done = run(words)
    assert done.returncode == 0, done.stderr
    return without(rows(savedir / "run"), OF_TIME_OR_MACHINE)


def without(table: list[dict[str, str]], names: set[str]) -> list[dict[str, str]]:
    return [{name: value for name, value in row.items() if name not in names} for row in table]


@pytest.mark.parametrize(("settings", "lag"), [("replay", 1), ("passes", 0), ("passes", 1), ("with memory", 5)])
def test_two_runs_are_the_same_whatever_the_processes_and_the_load(settings: str, lag: int, tmp_path: Path) -> None:
    flags = [*SETTINGS[settings], f"--lag={lag}", "--seed=3"]

    alone = learned("mono", tmp_path / "one", *flags, "--num-actor-processes=1")
    beside = learned("mono", tmp_path / "three", *flags, "--num-actor-processes=3", load=2)

    assert len(alone) >= 25 and float(alone[-1]["episodes"]) > 20
    assert alone == beside
    assert alone != learned("mono", tmp_path / "other", *flags[:-1], "--seed=4", "--num-actor-processes=1")


@pytest.mark.parametrize(("settings", "lag"), [("passes", 0), ("with memory", 3)])
def test_env_servers_play_the_same_run_as_mono_whatever_their_number(settings: str, lag: int, tmp_path: Path) -> None:
    flags = [*SETTINGS[settings], f"--lag={lag}", "--seed=3"]

    mono = learned("mono", tmp_path / "mono", *flags, "--num-actor-processes=1")
    one = learned("train", tmp_path / "one", *flags, "--num-servers=1")
    two = learned("train", tmp_path / "two", *flags, "--num-servers=2", load=2)

    assert len(one) >= 25 and float(one[-1]["episodes"]) > 20
    assert one == two
    of_pool = {name for name, value in mono[0].items() if value == ""} - {"mean_episode_return", "mean_episode_step"}
    assert without(one, of_pool) == without(mono, of_pool)
