"""`kubebeast train` and `kubebeast learner` have their own address and threads of inference."""

import socket
from pathlib import Path

import pytest

from harness.processes.training_process import checkpoint_steps, command, rows, run, training_command


@pytest.mark.parametrize("flag", ["--num-inference-threads=2", "--inference-device=cpu,cpu:0"])
def test_threads_and_devices_of_inference_share_the_memory(flag: str, tmp_path: Path) -> None:
    process = run(training_command("train", tmp_path, "--total-steps=800", "--use-lstm", flag))
    assert process.returncode == 0, process.stderr
    assert checkpoint_steps(tmp_path / "run")[0] >= 800


def test_env_servers_wait_for_updates(tmp_path: Path) -> None:
    size = ("--num-actors=4", "--num-servers=1", "--unroll-length=64", "--batch-size=4")
    flags = ("--passes=10", "--minibatches=8", "--total-steps=5000", "--wait-for-updates")
    process = run(training_command("train", tmp_path, *size, *flags))
    assert process.returncode == 0, process.stderr
    lags = [float(row["policy_lag"]) for row in rows(tmp_path / "run") if row["policy_lag"]]
    assert lags and max(lags) < 1.0, "without the wait it is 2 and more"


def test_a_long_temporary_folder_falls_back_to_loopback(tmp_path: Path) -> None:
    folder = tmp_path.joinpath(*["a-long-name-of-a-folder"] * 5)
    folder.mkdir(parents=True)
    flags = ("--total-steps=200", "--log-level=debug")
    process = run(training_command("train", tmp_path, *flags), TMPDIR=str(folder))
    assert process.returncode == 0, process.stderr
    assert "listening on 127.0.0.1:" in process.stderr
    assert list(folder.glob("kubebeast-*")) == []


def test_an_address_in_use_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        process = run(command("learner", f"--address={address}", f"--savedir={tmp_path}", "--progress=none"))
    assert process.returncode == 1
    assert address in process.stderr
