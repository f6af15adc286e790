"""What `kubebeast train` and `kubebeast mono` have in common: runs, their logs and checkpoints, signals, errors."""

import json
import signal
import subprocess
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
import yaml

from harness.processes import warm_start
from harness.processes.training_process import (
    TIMEOUT_S,
    checkpoint_steps,
    command,
    environment,
    rows,
    run,
    snapshots,
    training_command,
    was_successful,
)

pytestmark = pytest.mark.timeout(4 * TIMEOUT_S)

both = pytest.mark.parametrize("name", ["train", "mono"])


@dataclass(frozen=True)
class Trained:
    """A finished run of 3000 steps."""

    name: str
    savedir: Path
    process: subprocess.CompletedProcess[str]

    @property
    def folder(self) -> Path:
        return self.savedir / "run"


@pytest.fixture(scope="module", params=["train", "mono"])
def trained(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Trained:
    savedir = tmp_path_factory.mktemp("logs")
    process = run(training_command(request.param, savedir, "--total-steps=3000"))
    return Trained(request.param, savedir, process)


def test_training_ends_with_logs_a_checkpoint_and_a_summary(trained: Trained) -> None:
    process = trained.process
    assert process.returncode == 0, process.stderr
    (step,) = checkpoint_steps(trained.folder)
    assert 3000 <= step < 3000 + 10 * 4
    assert int(rows(trained.folder)[-1]["step"]) == step
    assert snapshots(process.stdout)[-1]["step"] == step
    assert f"{step:,} steps" in process.stderr
    assert f"kubebeast eval --savedir {trained.savedir} --xpid run" in process.stderr
    assert "settings of recipe CartPole-v1" in process.stderr


def test_learning_rate_falls_linearly_to_zero(trained: Trained) -> None:
    last = snapshots(trained.process.stdout)[-1]
    before = last["step"] - last["num_transitions"]
    assert last["learning_rate"] == pytest.approx(0.003 * (1 - before / 3000))


def test_meta_and_config_tell_what_was_run(trained: Trained) -> None:
    meta = json.loads((trained.folder / "meta.json").read_text())
    config = yaml.safe_load((trained.folder / "config.yaml").read_text())
    assert meta["successful"] is True and meta["date_end"]
    assert meta["args"] == config
    assert (config["env"], config["unroll_length"], config["num_actors"]) == ("CartPole-v1", 10, 4)


def test_the_run_can_be_evaluated(trained: Trained) -> None:
    process = run(command("eval", f"--savedir={trained.savedir}", "--xpid=run", "--episodes=2", "--json"))
    assert process.returncode == 0, process.stderr
    assert len(json.loads(process.stdout)["episodes"]) == 2


def test_the_same_xpid_goes_on_where_it_stopped(trained: Trained) -> None:
    (step,) = checkpoint_steps(trained.folder)
    ticks = len(rows(trained.folder))
    second = run(training_command(trained.name, trained.savedir, "--total-steps=4000"))
    assert second.returncode == 0, second.stderr
    assert f"at step {step} of 4000" in second.stderr
    seen = snapshots(second.stdout)
    trained_now = [snapshot for snapshot in seen if snapshot["step"] > step]
    assert seen[0]["step"] >= step and seen[-1]["step"] >= 4000
    assert trained_now[0]["num_updates"] > snapshots(trained.process.stdout)[-1]["num_updates"]
    assert checkpoint_steps(trained.folder) == [step, seen[-1]["step"]]
    numbers = [int(row["_tick"]) for row in rows(trained.folder)]
    assert len(numbers) > ticks and numbers == list(range(len(numbers)))

    finished = run(training_command(trained.name, trained.savedir, "--total-steps=4000"))
    assert finished.returncode == 0 and snapshots(finished.stdout) == []


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (
            ["--env=Acrobot-v1", "--recipe=none", "--model=mlp", "--seed=2"],
            ["seed = 2, env = 'Acrobot-v1'", "was trained with seed = 1, env = 'CartPole-v1'", "another xpid"],
        ),
        (["--device=cuda:99", "--alpha=0.5"], ["device = 'cuda:99'"]),
    ],
    ids=["kept", "not here"],
)
def test_a_resume_that_is_refused_leaves_the_files_of_the_run_alone(
    trained: Trained, flags: list[str], words: list[str]
) -> None:
    before = {name: (trained.folder / name).read_text() for name in ("meta.json", "config.yaml")}
    process = run(training_command(trained.name, trained.savedir, "--total-steps=9000", *flags))
    assert process.returncode == 2
    assert [word for word in words if word not in process.stderr] == []
    assert {name: (trained.folder / name).read_text() for name in before} == before


def test_a_resume_applies_and_records_what_may_change(trained: Trained) -> None:
    (*_, step) = checkpoint_steps(trained.folder)
    changed = ["--alpha=0.5", "--epsilon=0.25", "--momentum=0.75", "--batch-size=8", "--discounting=0.9"]
    process = run(training_command(trained.name, trained.savedir, f"--total-steps={step + 400}", *changed))
    assert process.returncode == 0, process.stderr
    assert "alpha 0.99 -> 0.5" in process.stderr and "batch_size 4 -> 8" in process.stderr
    path = max(trained.folder.glob("checkpoint-*.pt"))
    state = torch.load(path, weights_only=True)
    (group,) = state["learner"]["optimizer"]["param_groups"]
    assert (group["alpha"], group["eps"], group["momentum"]) == (0.5, 0.25, 0.75)
    recorded = yaml.safe_load((trained.folder / "config.yaml").read_text())
    assert state["config"] == recorded
    assert (recorded["alpha"], recorded["batch_size"]) == (0.5, 8)
    assert snapshots(process.stdout)[-1]["num_transitions"] > 4 * 10


@both
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_saves_a_checkpoint_and_ends_well(tmp_path: Path, name: str, number: signal.Signals) -> None:
    words = training_command(name, tmp_path, "--total-steps=100000000")
    with warm_start.Process(words, env=environment()) as process:
        step_seen = 0
        while step_seen == 0:
            step_seen = json.loads(process.stdout.readline())["step"]
        process.send_signal(number)
        output, errors = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 0, errors
    (step,) = checkpoint_steps(tmp_path / "run")
    assert step >= step_seen
    assert snapshots(output)[-1]["step"] == step
    assert was_successful(tmp_path / "run")


@both
def test_a_memory_is_trained_saved_and_resumed_like_the_rest(tmp_path: Path, name: str) -> None:
    for total_steps in (800, 1200):
        process = run(training_command(name, tmp_path, f"--total-steps={total_steps}", "--use-lstm"))
        assert process.returncode == 0, process.stderr
        assert checkpoint_steps(tmp_path / "run")[-1] >= total_steps


@both
def test_replayed_unrolls_are_trained_on_and_not_counted(tmp_path: Path, name: str) -> None:
    process = run(training_command(name, tmp_path, "--total-steps=1000", "--replay-share=0.5"))
    assert process.returncode == 0, process.stderr
    last = snapshots(process.stdout)[-1]
    assert last["num_transitions"] <= 2 * 10, "half of four unrolls of ten are from the replay"
    assert 1000 <= last["step"] < 1000 + 20


@both
def test_a_profile_shows_where_the_time_goes(tmp_path: Path, name: str) -> None:
    process = run(training_command(name, tmp_path, "--total-steps=3000", "--profile"))
    assert process.returncode == 0, process.stderr
    events = json.loads((tmp_path / "run" / "trace.json").read_text())["traceEvents"]
    spans = Counter(event["name"] for event in events if event["ph"] == "X")
    for span in ("to_device", "forward", "backward", "optimizer", "publish"):
        assert spans[span] == 20
    assert spans["dequeue"] >= 20 and spans["inference"] >= 10
    assert list((tmp_path / "run").glob("trace-*.json")) == []


@both
def test_disable_checkpoint_writes_none(tmp_path: Path, name: str) -> None:
    process = run(training_command(name, tmp_path, "--total-steps=400", "--disable-checkpoint"))
    assert process.returncode == 0, process.stderr
    assert checkpoint_steps(tmp_path / "run") == [] and "kubebeast eval" not in process.stdout


@both
def test_an_environment_nobody_knows_fails_the_run_with_its_name(tmp_path: Path, name: str) -> None:
    process = run(training_command(name, tmp_path, "--env=NoSuchGame-v0", "--recipe=none"))
    assert process.returncode in (1, 2)
    assert "NoSuchGame" in process.stderr
    assert not was_successful(tmp_path / "run")


@both
def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_text("not a folder")
    process = run(training_command(name, tmp_path / "file"))
    assert process.returncode == 2
    assert f"savedir = '{tmp_path / 'file'}'" in process.stderr
