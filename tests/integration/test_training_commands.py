"""`kubebeast train` and `kubebeast mono` share their runs, logs, checkpoints, signals and errors."""

import json
import os
import signal
import subprocess
import sys
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
from tests.child_processes import SPAWNED, children

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
@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, {130, -signal.SIGINT}), (signal.SIGTERM, {0}), (signal.SIGHUP, {0})]
)
def test_a_signal_saves_a_checkpoint_and_ends_well(
    tmp_path: Path, name: str, number: signal.Signals, status: set[int]
) -> None:
    """After Ctrl-C the shell gets 130, if the command exits with it or, on a terminal, dies of the signal."""
    words = training_command(name, tmp_path, "--total-steps=100000000")
    with warm_start.Process(words, env=environment()) as process:
        step_seen = 0
        while step_seen == 0:
            step_seen = json.loads(process.stdout.readline())["step"]
        process.send_signal(number)
        output, errors = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode in status, errors
    (step,) = checkpoint_steps(tmp_path / "run")
    assert step >= step_seen
    assert snapshots(output)[-1]["step"] == step
    assert was_successful(tmp_path / "run")


@both
def test_a_run_whose_folder_is_deleted_ends_with_a_reason_and_a_checkpoint(tmp_path: Path, name: str) -> None:
    words = training_command(name, tmp_path, "--total-steps=100000000")
    with warm_start.Process(words, env=environment()) as process:
        step_seen = 0
        while step_seen == 0:
            step_seen = json.loads(process.stdout.readline())["step"]
        (tmp_path / "run").rename(tmp_path / "elsewhere")
        _, errors = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 1
    assert f"{tmp_path / 'run'} was deleted under way" in errors
    (step,) = checkpoint_steps(tmp_path / "run")
    assert step >= step_seen


@both
def test_files_of_the_working_directory_hide_no_module_of_python(tmp_path: Path, name: str) -> None:
    for module in ("random", "token", "typing", "select", "tempfile", "signal", "socket", "_posixshmem"):
        (tmp_path / f"{module}.py").write_text("raise SystemExit('this is not the module of Python')")
    (tmp_path / "beside_me.py").write_text("from kubebeast_envserver import catch")
    words = training_command(name, tmp_path, "--env=beside_me:Catch-v0", "--total-steps=300")
    script = str(Path(sys.executable).with_name("kubebeast"))
    process = subprocess.run(
        [script, *words[words.index(name) :]],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        env=environment(),
    )
    assert process.returncode == 0, process.stderr


def test_ctrl_c_in_the_first_seconds_prints_no_traceback(tmp_path: Path) -> None:
    words = training_command("mono", tmp_path, "--total-steps=100000000", "--progress=none")
    with subprocess.Popen(
        words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment(), start_new_session=True
    ) as process:
        assert process.stderr is not None
        line = process.stderr.readline()  # of the recipe: the training modules are imported next
        assert "settings of recipe" in line
        os.killpg(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode in (130, -signal.SIGINT)
    assert "Traceback" not in errors


def test_ctrl_c_while_actor_processes_start_prints_no_traceback(tmp_path: Path) -> None:
    words = training_command("mono", tmp_path, "--total-steps=100000000", "--progress=none")
    with subprocess.Popen(
        words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment(), start_new_session=True
    ) as process:
        assert process.stderr is not None
        while not children(process.pid, SPAWNED):
            assert process.poll() is None
        os.killpg(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode in (130, -signal.SIGINT)
    assert "Traceback" not in errors
    assert [log for log in tmp_path.rglob("actors.log") if "Traceback" in log.read_text()] == []


def test_nohup_keeps_a_training_from_the_end_of_its_terminal(tmp_path: Path) -> None:
    words = training_command("mono", tmp_path, "--total-steps=100000000")
    with subprocess.Popen(
        ["nohup", *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment()
    ) as process:
        assert process.stdout is not None
        step = 0
        while step == 0:
            step = json.loads(process.stdout.readline())["step"]
        process.send_signal(signal.SIGHUP)
        while json.loads(process.stdout.readline())["step"] <= step + 1000:
            pass
        process.terminate()
        process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 0


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
    assert not (tmp_path / "run").exists(), "a run that never began leaves no folder"


@both
def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_text("not a folder")
    process = run(training_command(name, tmp_path / "file"))
    assert process.returncode == 2
    assert f"savedir = '{tmp_path / 'file'}'" in process.stderr
