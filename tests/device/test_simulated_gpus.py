"""The learner runs on two simulated GPUs without a fault: its tests, and whole commands with real env-servers."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from harness.ports import free_ports
from harness.processes.rank_training import EnvServer, Ranks
from harness.processes.training_process import TIMEOUT_S, checkpoint_steps
from tests.device.programs import run

PLUGIN = "tests.device.simulation.plugin"
GRAPHS = "tests/device/test_cuda_graphs.py"
TESTS = {
    "learners": ["tests/device/simulated/learners.py"],
    # In one process, whose start takes longer than most of them.
    "rules and faults": [
        "tests/device/simulated/simulation.py",
        "tests/device/simulated/threads.py",
        "tests/device/simulated/planted_faults.py",
        "tests/unit/learner/machine/test_devices.py",
        # One of each; torch.compile needs a compiler for GPUs.
        f"{GRAPHS}::test_updates_equal_eager_ones[normalised-adam]",
        f"{GRAPHS}::test_answers_are_those_of_eager_inference_beside_updates[frames]",
        f"{GRAPHS}::test_draws_of_a_graph_go_on_with_every_start",
        f"{GRAPHS}::test_work_that_waits_for_the_device_is_refused_and_the_device_goes_on",
    ],
}
SMALL = ["--compile=off", "--progress=none", "--log-format=json", "--xpid=run"]
PONG = ["--env=PongNoFrameskip-v4", "--recipe=torchbeast", "--unroll-length=10", "--batch-size=2", "--total-steps=120"]
CARTPOLE = ["--env=CartPole-v1", "--recipe=torchbeast", "--unroll-length=10", "--batch-size=4"]
PASSES = ["--env=CartPole-v1", "--passes=2", "--minibatches=2", "--unroll-length=10", "--batch-size=4"]
COMMANDS = {
    "a GPU to train on and one to play on": [
        "train",
        *PASSES,
        "--device=cuda:1",
        "--inference-device=cuda:0",
        "--total-steps=400",
    ],
    "frames of two threads": [
        "train",
        *PONG,
        "--device=cuda",
        "--num-inference-threads=2",
        "--num-servers=2",
        "--use-lstm",
    ],
    "mono": ["mono", *CARTPOLE, "--device=cuda", "--cuda-graphs=off", "--total-steps=400"],
}


def run_command(words: Sequence[str], folder: Path, simulation: dict[str, str]) -> dict[str, Any]:
    """Runs a command and returns the findings of its process."""
    before = set(folder.glob("*.json"))
    program = ["-m", "tests.device.simulation", *words, *SMALL, f"--savedir={folder}"]
    run(program, {**simulation, "SIMULATION_FINDINGS": str(folder)})
    (made,) = set(folder.glob("*.json")) - before
    findings: dict[str, Any] = json.loads(made.read_text())
    return findings


@pytest.mark.parametrize("name", TESTS)
def test_tests_pass_on_simulated_gpus(name: str, simulation: dict[str, str]) -> None:
    printed = run(["-m", "pytest", "-q", "-p", PLUGIN, "-p", "no:cacheprovider", *TESTS[name]], simulation)
    assert " passed" in printed and "skipped" not in printed


@pytest.mark.parametrize("name", COMMANDS)
def test_a_training_has_no_faults(name: str, tmp_path: Path, simulation: dict[str, str]) -> None:
    findings = run_command(COMMANDS[name], tmp_path, simulation)
    assert findings["faults"] == []
    assert sum(findings["launches"].values()) > 100
    assert checkpoint_steps(tmp_path / "run")


def test_a_run_goes_on_on_the_cpu_and_still_plays_on_a_gpu(tmp_path: Path, simulation: dict[str, str]) -> None:
    for device, total_steps in (("cuda:1", 200), ("cpu", 400)):
        words = ["train", *CARTPOLE, f"--device={device}", "--inference-device=cuda:1", f"--total-steps={total_steps}"]
        findings = run_command(words, tmp_path, simulation)
        assert findings["faults"] == [] and "aten::argmax" in findings["launches"]  # it plays on the GPU
        assert ("aten::_fused_adam_" in findings["launches"]) == (device == "cuda:1")
        assert checkpoint_steps(tmp_path / "run")[-1] >= total_steps


def test_two_ranks_train_on_a_gpu_each(
    tmp_path: Path, simulation: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {**simulation, "SIMULATION_FINDINGS": str(tmp_path)}.items():
        monkeypatch.setenv(name, value)
    port, flags = free_ports(2), ["--device=cuda", "--total-steps=400"]
    with (
        Ranks(tmp_path, 2, *flags, port=port, module="tests.device.simulation") as ranks,
        EnvServer(port),
        EnvServer(port + 1),
    ):
        assert ranks.process.wait(TIMEOUT_S) == 0
    found = [json.loads(each.read_text()) for each in tmp_path.glob("*.json")]
    assert [each["faults"] for each in found] == [[], []]
    assert all(each["launches"] for each in found)
