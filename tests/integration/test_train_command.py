"""`kubebeast train` as a user runs it: a process of its own, with env-servers of its own."""

import csv
import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

TIMEOUT_S = 90
FLAGS = [
    "--env=CartPole-v1",
    "--num-servers=2",
    "--num-actors=4",
    "--unroll-length=10",
    "--batch-size=4",
    "--compile=off",
    "--log-interval-s=0.2",
    "--progress=json",
]

pytestmark = [pytest.mark.slow, pytest.mark.timeout(4 * TIMEOUT_S)]


def command(name: str, *flags: str) -> list[str]:
    return [sys.executable, "-m", "kubebeast_learner", name, *flags]


def environment(**variables: str) -> dict[str, str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("KUBEBEAST_")}
    return {**clean, "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1", **variables}


def train(savedir: Path, *flags: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command("train", *FLAGS, f"--savedir={savedir}", "--xpid=run", *flags),
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        env=environment(**variables),
    )


def snapshots(output: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in output.splitlines() if line.startswith("{")]


def rows(folder: Path) -> list[dict[str, str]]:
    with open(folder / "fields.csv", newline="") as file:
        names = list(csv.reader(file))[-1]
    with open(folder / "logs.csv", newline="") as file:
        return list(csv.DictReader((line for line in file if not line.startswith("#")), names))


def checkpoint_steps(folder: Path) -> list[int]:
    paths = sorted(folder.glob("checkpoint-*.pt"))
    return [torch.load(path, weights_only=True)["step"] for path in paths]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """A finished run of 3000 steps: its savedir and its process."""
    savedir = tmp_path_factory.mktemp("logs")
    return savedir, train(savedir, "--total-steps=3000")


def test_training_ends_with_logs_a_checkpoint_and_a_summary(
    trained: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    savedir, process = trained
    assert process.returncode == 0, process.stderr
    (step,) = checkpoint_steps(savedir / "run")
    assert 3000 <= step < 3000 + 10 * 4
    assert int(rows(savedir / "run")[-1]["step"]) == step
    assert snapshots(process.stdout)[-1]["step"] == step
    assert f"{step:,} steps" in process.stdout
    assert f"kubebeast eval --savedir {savedir} --xpid run" in process.stdout
    assert "settings of recipe CartPole-v1" in process.stderr


def test_learning_rate_falls_linearly_to_zero(trained: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    _, process = trained
    last = snapshots(process.stdout)[-1]
    before = last["step"] - last["num_transitions"]
    assert last["learning_rate"] == pytest.approx(0.003 * (1 - before / 3000))


def test_meta_and_config_tell_what_was_run(trained: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    savedir, _ = trained
    meta = json.loads((savedir / "run" / "meta.json").read_text())
    config = yaml.safe_load((savedir / "run" / "config.yaml").read_text())
    assert meta["successful"] is True and meta["date_end"]
    assert meta["args"] == config
    assert (config["env"], config["unroll_length"], config["num_actors"]) == ("CartPole-v1", 10, 4)


def test_the_run_can_be_evaluated(trained: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    savedir, _ = trained
    words = command("eval", f"--savedir={savedir}", "--xpid=run", "--episodes=2", "--json")
    process = subprocess.run(words, capture_output=True, text=True, timeout=TIMEOUT_S, env=environment())
    assert process.returncode == 0, process.stderr
    assert len(json.loads(process.stdout)["episodes"]) == 2


def test_the_same_xpid_goes_on_where_it_stopped(trained: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    savedir, first = trained
    (step,) = checkpoint_steps(savedir / "run")
    ticks = len(rows(savedir / "run"))
    second = train(savedir, "--total-steps=4000")
    assert second.returncode == 0, second.stderr
    assert f"at step {step} of 4000" in second.stderr
    seen = snapshots(second.stdout)
    assert seen[0]["step"] > step and seen[-1]["step"] >= 4000
    assert seen[0]["num_updates"] > snapshots(first.stdout)[-1]["num_updates"]
    assert checkpoint_steps(savedir / "run") == [step, seen[-1]["step"]]
    assert [int(row["_tick"]) for row in rows(savedir / "run")] == list(range(ticks + len(seen)))

    finished = train(savedir, "--total-steps=4000")
    assert finished.returncode == 0 and snapshots(finished.stdout) == []

    other = train(savedir, "--total-steps=9000", "--env=Acrobot-v1", "--recipe=none", "--model=mlp")
    assert other.returncode == 2
    assert "another environment" in other.stderr and "observation leaf float32 [4]" in other.stderr

    wider = train(savedir, "--total-steps=9000", "--hidden-sizes", "32")
    assert wider.returncode == 2
    assert "hidden_sizes = [32]" in wider.stderr and "was trained with [64, 64]" in wider.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_saves_a_checkpoint_and_ends_well(tmp_path: Path, number: signal.Signals) -> None:
    words = command("train", *FLAGS, f"--savedir={tmp_path}", "--xpid=run", "--total-steps=100000000")
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment()
    ) as process:
        assert process.stdout is not None
        seen = json.loads(process.stdout.readline())
        process.send_signal(number)
        output, errors = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 0, errors
    (step,) = checkpoint_steps(tmp_path / "run")
    assert step >= seen["step"] > 0
    assert snapshots(output)[-1]["step"] == step
    assert json.loads((tmp_path / "run" / "meta.json").read_text())["successful"] is True


def test_a_run_without_working_env_servers_fails_with_their_reason(tmp_path: Path) -> None:
    process = train(tmp_path, "--env=NoSuchGame-v0", "--recipe=none")
    assert process.returncode == 1
    assert "NoSuchGame" in process.stderr
    assert json.loads((tmp_path / "run" / "meta.json").read_text())["successful"] is False


def test_a_memory_is_trained_and_saved_like_the_rest(tmp_path: Path) -> None:
    process = train(tmp_path, "--total-steps=800", "--use-lstm", "--num-inference-threads=2")
    assert process.returncode == 0, process.stderr
    assert checkpoint_steps(tmp_path / "run")[0] >= 800


def test_disable_checkpoint_writes_none(tmp_path: Path) -> None:
    process = train(tmp_path, "--total-steps=400", "--disable-checkpoint")
    assert process.returncode == 0, process.stderr
    assert checkpoint_steps(tmp_path / "run") == [] and "kubebeast eval" not in process.stdout


def test_a_long_temporary_folder_falls_back_to_loopback(tmp_path: Path) -> None:
    folder = tmp_path.joinpath(*["a-long-name-of-a-folder"] * 5)
    folder.mkdir(parents=True)
    process = train(tmp_path, "--total-steps=200", TMPDIR=str(folder))
    assert process.returncode == 0, process.stderr
    assert "listening on 127.0.0.1:" in process.stderr
    assert list(folder.glob("kubebeast-*")) == []


def test_an_address_in_use_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        words = command("learner", f"--address={address}", f"--savedir={tmp_path}", "--progress=none")
        process = subprocess.run(words, capture_output=True, text=True, timeout=TIMEOUT_S, env=environment())
    assert process.returncode == 1
    assert address in process.stderr


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    process = train(tmp_path / "file")
    assert process.returncode == 2
    assert f"savedir = '{tmp_path / 'file'}'" in process.stderr
