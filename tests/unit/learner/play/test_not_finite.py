"""A model with any value that is not finite is not played, shown or exported."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium import spaces

from kubebeast_learner.config import EvalConfig, ExportConfig, ModelConfig, RenderConfig
from kubebeast_learner.play import evaluate, export, render
from kubebeast_learner.play.trained_model import load_trained
from kubebeast_learner.run import checkpoint
from tests.unit.learner.play.playing import write_run

MODEL = ModelConfig(model="mlp", normalise_observations=True, normalise_values=True)


class FarAway(gymnasium.Env[Any, Any]):
    """The second observation holds the largest number that an environment may send."""

    observation_space = spaces.Box(-np.inf, np.inf, (4,), np.float32)
    action_space = spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        return np.zeros(4, np.float32), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        return np.full(4, np.finfo(np.float32).max), 1.0, False, False, {}


gymnasium.register("FarAway-v0", entry_point=f"{__name__}:FarAway")


def spoil(folder: Path, name: str, value: float) -> None:
    (path,) = folder.glob("*.pt")
    state = torch.load(path, weights_only=True)
    state["learner"]["model"][name].flatten()[0] = value
    torch.save(state, path)


def evaluate_it(folder: Path) -> int:
    return evaluate.run(EvalConfig(savedir=str(folder.parent), xpid=folder.name, episodes=1))


def render_it(folder: Path) -> int:
    return render.run(RenderConfig(savedir=str(folder.parent), xpid=folder.name, out=folder / "video.gif"))


def export_it(folder: Path) -> int:
    return export.run(ExportConfig(savedir=str(folder.parent), xpid=folder.name, out=folder / "model.pt2"))


@pytest.mark.parametrize("command", [evaluate_it, render_it, export_it])
@pytest.mark.parametrize("value", [torch.nan, torch.inf, -torch.inf])
@pytest.mark.parametrize("name", ["policy.weight", "normaliser.leaves.0.mean", "baseline.variance"])
def test_a_checkpoint_that_is_not_finite_is_refused_by_every_command(
    command: Callable[[Path], int], value: float, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write_run(tmp_path / "run", "CartPole-v1", MODEL)
    spoil(folder, name, value)
    assert command(folder) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert f"{name} holds {value}" in captured.err
    assert not [path for path in folder.iterdir() if path.suffix in (".gif", ".pt2", ".json")]


def test_a_file_that_is_not_finite_is_refused_by_the_name_of_its_tensor(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", "CartPole-v1", MODEL)
    spoil(folder, "policy.bias", torch.nan)
    (path,) = folder.glob("*.pt")
    with pytest.raises(checkpoint.CheckpointError, match=r"cannot be played: policy\.bias holds nan"):
        load_trained(EvalConfig(checkpoint=path))


def test_a_mask_that_the_model_was_made_with_is_played(tmp_path: Path) -> None:
    config = ModelConfig(model="tests.unit.learner.models.user_models:Causal")
    folder = write_run(tmp_path / "run", "CartPole-v1", config)
    assert evaluate_it(folder) == 0
    weights = folder / "weights.safetensors"
    assert evaluate.run(EvalConfig(checkpoint=weights, trust_checkpoint=True, episodes=1)) == 0


@pytest.mark.parametrize("use_lstm", [False, True])
def test_an_observation_too_large_for_the_weights_ends_the_evaluation_in_words(
    use_lstm: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write_run(tmp_path / "run", "FarAway-v0", ModelConfig(model="mlp", use_lstm=use_lstm))
    spoil(folder, "torso.layers.0.weight", 1.5)
    assert evaluate_it(folder) == 1
    assert "rows: the weights are not finite, or the observation holds numbers too large" in capsys.readouterr().err


def test_an_observation_too_large_for_the_weights_is_cut_off_where_it_is_normalised(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", "FarAway-v0", MODEL)
    evaluation = evaluate.evaluate(EvalConfig(savedir=str(tmp_path), xpid=folder.name, episodes=1, max_episode_steps=5))
    assert evaluation.episodes[0].cut_off


def test_weights_too_large_to_compute_with_are_not_exported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_run(tmp_path / "run", "CartPole-v1", ModelConfig(model="mlp"))
    (path,) = folder.glob("*.pt")
    state = torch.load(path, weights_only=True)
    for name, tensor in state["learner"]["model"].items():
        if name.endswith("weight"):
            tensor.fill_(1e20)
    torch.save(state, path)
    assert export_it(folder) == 1
    assert "the model's outputs are not finite" in capsys.readouterr().err
