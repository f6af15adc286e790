"""`kubebeast tune` measures this machine and writes settings with which `kubebeast train` trains."""

import json
from pathlib import Path

import pytest
import yaml

from harness.processes.training_process import checkpoint_steps, command, run

CATCH = "kubebeast_envserver.catch:Catch-v0"


def test_train_trains_with_the_file_that_tune_writes(tmp_path: Path) -> None:
    out = tmp_path / "tuned.yaml"
    flags = [f"--env={CATCH}", "--unroll-length=5", "--hidden-sizes", "8", "--seconds=0.5"]
    tuned = run(command("tune", *flags, f"--out={out}"))
    assert tuned.returncode == 0, tuned.stderr
    assert tuned.stdout == ""
    settings = yaml.safe_load(out.read_text(encoding="utf-8"))
    assert (settings["env"], settings["unroll_length"], settings["hidden_sizes"]) == (CATCH, 5, [8])
    assert settings["num_actors"] % settings["num_servers"] == 0

    flags = [f"--config={out}", "--recipe=auto", "--total-steps=400", "--progress=none"]
    trained = run(command("train", *flags, f"--savedir={tmp_path}", "--xpid=run"))
    assert trained.returncode == 0, trained.stderr
    assert checkpoint_steps(tmp_path / "run")[0] >= 400


def test_a_recurrent_network_is_measured_and_the_log_has_what_was_considered() -> None:
    flags = ["--env=CartPole-v1", "--use-lstm", "--learner-threads=1", "--unroll-length=1", "--batch-size=1"]
    process = run(command("tune", *flags, "--seconds=0.5"))
    assert process.returncode == 0, process.stderr
    settings = yaml.safe_load(process.stdout)
    assert (settings["learner_threads"], settings["precision"], settings["use_lstm"]) == (1, "fp32", True)
    lines = [json.loads(line) for line in process.stderr.splitlines() if line.startswith("{")]
    (best,) = (line for line in lines if line["message"] == "choice" and line["chosen"])
    assert best["num_actors"] == settings["num_actors"]
    assert best["steps_per_s"] == min(value for name, value in best.items() if name.endswith("_steps_per_s"))
    etas = [line["eta_s"] for line in lines if line["message"] == "progress"]
    assert etas == sorted(etas, reverse=True) and etas[0] == 0.5
    reasons = {line["name"]: line["reason"] for line in lines if line["message"] == "setting"}
    assert reasons.keys() <= settings.keys() and all(reasons.values())


@pytest.mark.parametrize(
    ("flags", "parts"),
    [
        (["--seconds=0"], ["seconds = 0", "must be positive"]),
        (["--out=/no/such/folder/file"], ["out = '/no/such/folder/file'", "folder"]),
        (["--env=NoSuchGame-v0"], ["NoSuchGame"]),
        (["--num-learners=2", "--num-servers=2"], ["num_learners = 2"]),
        (["--task-shares=A=1,B=1"], ["task_shares = 'A=1,B=1'"]),
        (["--dial=host:1"], ["dial = 'host:1'"]),
        (["--learner-threads=1000"], ["learner_threads = 1000", "cores"]),
        (["--device=cuda:99"], ["device = 'cuda:99'"]),
    ],
)
def test_what_cannot_be_measured_is_named(flags: list[str], parts: list[str]) -> None:
    process = run(command("tune", *flags))
    assert process.returncode in (1, 2)
    assert process.stdout == ""
    assert [part for part in parts if part not in process.stderr] == []
