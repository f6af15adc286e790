"""`kubebeast sweep` trains real runs, survives its own death, and writes settings that can be trained with."""

import csv
import itertools
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml

FILE: dict[str, Any] = {
    "settings": {
        "env": "CartPole-v1",
        "total_steps": 2000,
        "num_actors": 4,
        "unroll_length": 20,
        "batch_size": 4,
        "passes": 1,
        "minibatches": 1,
        "log_interval_s": 0.2,
        "learner_threads": 1,
        "compile": "off",
    },
    "parameters": {"learning_rate": [0.0001, 0.001, 0.01], "entropy_cost": {"range": [0.0, 0.02]}},
    "num_trials": 3,
    "seeds": [1, 2],
    "search_seed": 3,
}


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., "subprocess.Popen[str]"]]:
    """Returns a function that starts a sweep with entries of its file; all are ended after the test."""
    started: list[subprocess.Popen[str]] = []

    def start_sweep(*flags: str, **entries: Any) -> "subprocess.Popen[str]":
        file = tmp_path / "tiny.yaml"
        given = {name: value for name, value in {**FILE, **entries}.items() if value is not None}
        file.write_text(yaml.safe_dump(given))
        words = [sys.executable, "-m", "kubebeast_learner", "sweep", str(file), f"--savedir={tmp_path}", *flags]
        started.append(subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
        return started[-1]

    yield start_sweep
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


def trials(folder: Path) -> list[dict[str, str]]:
    with open(folder / "trials.csv", newline="") as file:
        return list(csv.DictReader(file))


def steps_of(run: Path) -> list[int]:
    with open(run / "logs.csv", newline="") as file:
        return [int(row["step"]) for row in csv.DictReader(file)]


def annealed_shares(run: Path) -> list[float]:
    """Returns the share of each row's learning rate in that of the settings."""
    initial = float(yaml.safe_load((run / "config.yaml").read_text())["learning_rate"])
    with open(run / "logs.csv", newline="") as file:
        return [float(row["learning_rate"]) / initial for row in csv.DictReader(file) if row["learning_rate"]]


def wait_for(process: "subprocess.Popen[str]", message: str, count: int = 1) -> None:
    """Blocks until the log of a sweep has had so many lines with a message."""
    assert process.stderr is not None
    lines = (line for line in process.stderr if message in line)
    assert len(list(itertools.islice(lines, count))) == count


def runs_of(process: "subprocess.Popen[str]") -> list[psutil.Process]:
    return psutil.Process(process.pid).children()


def test_every_trial_is_trained_with_every_seed_and_the_best_settings_train(
    start: Callable[..., "subprocess.Popen[str]"], tmp_path: Path
) -> None:
    out, log = start("--progress=json", "--parallel=2").communicate()
    folder = tmp_path / "tiny"

    rows = trials(folder)
    assert [row["state"] for row in rows] == ["done"] * 3, log
    for row in rows:
        scores = [float(row[f"score of seed {seed}"]) for seed in (1, 2)]
        assert float(row["score"]) == pytest.approx(sum(scores) / 2, rel=1e-4)
        assert float(row["cpu_s"]) > 0
        runs = [folder / f"{int(row['trial']):03d}-seed{seed}" for seed in (1, 2)]
        settings = [yaml.safe_load((run / "config.yaml").read_text()) for run in runs]
        assert [each["seed"] for each in settings] == [1, 2]
        assert {each["learning_rate"] for each in settings} == {float(row["learning_rate"])}
        assert {each["entropy_cost"] for each in settings} == {float(row["entropy_cost"])}
    lines = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
    assert sorted(line["trial"] for line in lines if line["message"] == "trial") == [0, 1, 2]
    assert (folder / "sweep.png").stat().st_size > 10_000

    best = yaml.safe_load((folder / "best.yaml").read_text())
    top = max(rows, key=lambda row: float(row["score"]))
    assert best["learning_rate"] == float(top["learning_rate"])
    words = ["mono", f"--config={folder / 'best.yaml'}", f"--savedir={tmp_path}", "--xpid=again", "--progress=none"]
    subprocess.run([sys.executable, "-m", "kubebeast_learner", *words, "--total-steps=200"], check=True)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_sweep_that_was_ended_goes_on_without_a_lost_or_doubled_trial(
    start: Callable[..., "subprocess.Popen[str]"], tmp_path: Path, number: signal.Signals
) -> None:
    folder = tmp_path / "tiny"
    for message, count in (("begins", 2), ("begins", 1), ("begins", 3)):
        sweep = start("--progress=none", "--parallel=2")
        wait_for(sweep, message, count)
        runs = runs_of(sweep)
        assert runs
        os.kill(sweep.pid, number)
        _, log = sweep.communicate()
        assert sweep.returncode == (-signal.SIGKILL if number == signal.SIGKILL else 0), log
        psutil.wait_procs(runs, timeout=60)
        assert not any(run.is_running() for run in runs)

    _, log = start("--progress=none", "--parallel=2").communicate()
    rows = trials(folder)
    assert [row["state"] for row in rows] == ["done"] * 3, log
    assert sorted(each.name for each in folder.glob("*-seed*") if each.is_dir()) == sorted(
        f"{int(row['trial']):03d}-seed{seed}" for row in rows for seed in (1, 2)
    )
    for run in (each for each in folder.glob("*-seed*") if each.is_dir()):
        assert steps_of(run)[-1] >= 2000


def test_members_of_a_population_go_on_with_the_runs_of_the_best(
    start: Callable[..., "subprocess.Popen[str]"], tmp_path: Path
) -> None:
    entries = {"search": "pbt", "num_trials": None, "population": {"members": 4, "interval": 1000}, "seeds": [5]}
    _, log = start("--progress=none", "--parallel=4", **entries).communicate()
    folder = tmp_path / "tiny"
    rows = trials(folder)

    assert [row["state"] for row in rows] == ["done"] * 8, log
    assert "cuts off" not in log  # an interval has 250 steps of each environment
    assert [(row["member"], row["generation"]) for row in rows] == [(f"{m}", f"{g}") for g in (0, 1) for m in range(4)]
    for row in rows:
        run = folder / f"{int(row['trial']):03d}-seed{5 + int(row['member'])}"
        steps = steps_of(run)
        assert annealed_shares(run)[-1] == pytest.approx(1 - steps[-1] / 2000, abs=0.1)
        if row["generation"] == "0":
            assert not row["parent"] and steps[-1] < 2000
        else:
            assert steps[0] >= steps_of(folder / row["parent"])[-1]
            assert steps[-1] >= 2000
            assert f"{row['parent']}/checkpoint-" in (folder / f"{run.name}.txt").read_text()
    worst, best = (pick(rows[:4], key=lambda row: float(row["score"])) for pick in (min, max))
    assert rows[4 + int(worst["member"])]["parent"] == f"{int(best['trial']):03d}-seed{5 + int(best['member'])}"
    assert (folder / "sweep.png").stat().st_size > 10_000


def test_an_interval_that_cuts_off_episodes_is_noted_once(start: Callable[..., "subprocess.Popen[str]"]) -> None:
    settings = {**FILE["settings"], "env": "Pendulum-v1", "total_steps": 1000}
    entries = {"search": "pbt", "num_trials": None, "population": {"members": 4, "interval": 1000}, "seeds": [5]}
    _, log = start("--progress=none", "--parallel=4", settings=settings, **entries).communicate()

    (warning,) = [line for line in log.splitlines() if "cut" in line]
    assert "each of 4 environments makes 250 steps, and an episode has 200 in the mean" in warning


def test_a_second_process_of_the_same_sweep_is_refused(
    start: Callable[..., "subprocess.Popen[str]"], tmp_path: Path
) -> None:
    first = start("--progress=none")
    wait_for(first, "begins")
    second = start("--progress=none")
    _, log = second.communicate()

    assert second.returncode == 2
    assert f"process {first.pid}" in log and "runs this sweep" in log


def test_a_setting_that_no_training_has_ends_the_sweep_with_the_message_of_the_training(
    start: Callable[..., "subprocess.Popen[str]"],
) -> None:
    sweep = start("--progress=none", parameters={"learning_rat": [0.1, 0.2]}, num_trials=2)
    _, log = sweep.communicate()

    assert sweep.returncode == 2
    assert "did you mean learning_rate?" in log


def test_a_corrected_file_begins_the_sweep_anew_if_no_run_has_begun(
    start: Callable[..., "subprocess.Popen[str]"], tmp_path: Path
) -> None:
    refused = start("--progress=none", parameters={"learning_rat": [0.1, 0.2]}, num_trials=2)
    refused.communicate()
    assert refused.returncode == 2
    corrected = {"parameters": {"learning_rate": [0.1, 0.2]}, "num_trials": 1, "seeds": [1]}
    _, log = start("--progress=none", **corrected).communicate()
    assert [row["state"] for row in trials(tmp_path / "tiny")] == ["done"], log

    sweep = start("--progress=none", **{**corrected, "parameters": {"learning_rate": [0.1, 0.3]}})
    assert "which it keeps; give it another --name" in sweep.communicate()[1]
    settings = {**FILE["settings"], "log_interval_s": 0.3, "keep_checkpoints": 2}
    sweep = start("--progress=none", settings=settings, **{**corrected, "num_trials": 2})
    _, log = sweep.communicate()
    assert [row["state"] for row in trials(tmp_path / "tiny")] == ["done"] * 2, log


def test_a_score_without_a_column_is_named_while_the_first_run_trains(
    start: Callable[..., "subprocess.Popen[str]"],
) -> None:
    settings = {**FILE["settings"], "total_steps": 1_000_000}
    sweep = start("--progress=none", score="mean_episode_retrun", settings=settings, seeds=[1], num_trials=1)

    wait_for(sweep, "steps, logs.csv has no such column; did you mean mean_episode_return?")


def test_a_trial_without_a_number_for_its_score_fails_with_the_nearest_column(
    start: Callable[..., "subprocess.Popen[str]"], tmp_path: Path
) -> None:
    start("--progress=none", score="mean_episode_retrun", seeds=[1], num_trials=1).communicate()

    (row,) = trials(tmp_path / "tiny")
    assert row["state"] == "failed" and row["reason"].endswith("did you mean mean_episode_return?")


def test_trials_that_fail_are_counted_and_too_many_end_the_sweep(
    start: Callable[..., "subprocess.Popen[str]"], tmp_path: Path
) -> None:
    settings = {**FILE["settings"], "env": "tests.integration.envserver_faults:CannotBeMade-v0"}
    parameters = {"learning_rate": [1e-3, 2e-3, 3e-3, 4e-3]}
    sweep = start("--progress=none", settings=settings, parameters=parameters, seeds=[1], num_trials=4)
    _, log = sweep.communicate()

    assert sweep.returncode == 1
    assert "3 trials in a row have failed" in log
    assert sorted(row["state"] for row in trials(tmp_path / "tiny"))[:3] == ["failed"] * 3


def test_a_run_that_something_else_stops_goes_on(start: Callable[..., "subprocess.Popen[str]"], tmp_path: Path) -> None:
    settings = {**FILE["settings"], "total_steps": 20_000}
    sweep = start("--progress=none", "--parallel=1", settings=settings, seeds=[1], num_trials=1)
    log = tmp_path / "tiny" / "000-seed1" / "logs.csv"
    wait_for(sweep, "begins")
    while not log.exists() or len(log.read_text().splitlines()) < 3:
        assert sweep.poll() is None
    (run,) = runs_of(sweep)
    run.terminate()
    wait_for(sweep, "was stopped by a signal")
    _, rest = sweep.communicate()

    assert sweep.returncode == 0, rest
    assert [row["state"] for row in trials(tmp_path / "tiny")] == ["done"]
    assert steps_of(log.parent)[-1] >= 20_000


def test_a_goal_ends_the_sweep(start: Callable[..., "subprocess.Popen[str]"], tmp_path: Path) -> None:
    sweep = start("--progress=none", "--parallel=1", goal=5.0, seeds=[1])
    _, log = sweep.communicate()

    assert sweep.returncode == 0, log
    assert [row["state"] for row in trials(tmp_path / "tiny")] == ["done"]


def test_results_can_be_shown_while_the_sweep_runs(
    start: Callable[..., "subprocess.Popen[str]"], tmp_path: Path
) -> None:
    wait_for(start("--progress=none", seeds=[1]), "is done")
    shown = start("--show", seeds=[1])
    out, log = shown.communicate()

    assert shown.returncode == 0, log
    assert "learning_rate" in out and "best.yaml" in out
