"""`--init-from` begins a run of a command with the weights of another."""

from pathlib import Path

import pytest
import torch

from harness.processes.training_process import TRAININGS, command, run, training_command

OTHER_ENV = ("--env=Acrobot-v1", "--xpid=later")


def weights_at_start(savedir: Path) -> dict[str, torch.Tensor]:
    """Returns the weights of a run with a learning rate that changes nothing."""
    (path,) = (savedir / "later").glob("checkpoint-*.pt")
    state: dict[str, torch.Tensor] = torch.load(path, weights_only=True)["learner"]["model"]
    return state


@pytest.fixture(scope="module")
def earlier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of runs with one of CartPole, "run"."""
    savedir = tmp_path_factory.mktemp("runs")
    process = run(training_command("mono", savedir, "--total-steps=500"))
    assert process.returncode == 0, process.stderr
    return savedir


@pytest.mark.parametrize("name", ["mono", "train"])
def test_a_run_of_another_environment_begins_with_the_layers_that_fit(name: str, earlier: Path, tmp_path: Path) -> None:
    process = run(
        training_command(
            name, tmp_path, *OTHER_ENV, f"--init-from={earlier / 'run'}", "--total-steps=40", "--learning-rate=1e-30"
        )
    )
    assert process.returncode == 0, process.stderr
    (path,) = (earlier / "run").glob("checkpoint-*.pt")
    before = torch.load(path, weights_only=True)["learner"]["model"]
    after = weights_at_start(tmp_path)
    layers = {key.rpartition(".")[0] for key in after}
    other = {key.rpartition(".")[0] for key in after if key not in before or after[key].shape != before[key].shape}
    assert other and other != layers
    assert all(torch.equal(after[key], before[key]) for key in after if key.rpartition(".")[0] not in other)
    assert all(f"  {layer} " in process.stderr for layer in layers)
    assert "taken" in process.stderr and "new: " in process.stderr


def test_a_resumed_run_keeps_its_own_weights(earlier: Path, tmp_path: Path) -> None:
    flags = [*OTHER_ENV, f"--init-from={earlier / 'run'}", "--learning-rate=1e-30"]
    assert run(training_command("mono", tmp_path, *flags, "--total-steps=40")).returncode == 0
    process = run(training_command("mono", tmp_path, *flags, "--total-steps=80"))
    assert process.returncode == 0, process.stderr
    assert "resuming" in process.stderr and "taken" not in process.stderr


@pytest.mark.parametrize("name", TRAININGS)
def test_a_run_without_its_source_ends_before_it_trains(name: str, tmp_path: Path) -> None:
    process = run(command(name, f"--savedir={tmp_path}", "--xpid=later", "--init-from=nobody"))
    assert process.returncode == 2
    assert "init_from = 'nobody': there is no meta.json or weights.safetensors in" in process.stderr
