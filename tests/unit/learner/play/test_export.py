"""An exported actor computes the same as the checkpoint's model, or the export fails."""

import copy
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from kubebeast_common.spec.env_spec import EnvSpec
from kubebeast_common.spec.leaves import Leaf
from kubebeast_envserver.envs.factory import make_vector_env
from kubebeast_learner.config import CheckpointConfig, ConfigError, ExportConfig, ModelConfig
from kubebeast_learner.models import make_model
from kubebeast_learner.play import export as export_module
from kubebeast_learner.play.export import Actor, ExportError, Format, check, example_inputs, export, load, run, write
from kubebeast_learner.play.playing import play
from kubebeast_learner.play.trained_model import load_trained
from tests.unit.learner.play.playing import STEP, write_run

FORMATS: list[Format] = ["export", "torchscript"]
IMAGE = [Leaf("", "uint8", (84, 84), frame_stack=4)]
VECTOR = [Leaf("", "float32", (4,))]
STRUCTURE = [
    Leaf("camera", "uint8", (5, 5, 3)),
    Leaf("gear", "int64", (), num_categories=5),
    Leaf("lamps", "int8", (3,), num_categories=2),
    Leaf("speed", "float64", (2,)),
    Leaf("trim", "int8", (2,)),
    Leaf("word", "int64", (), num_categories=50),
]
ACTION = [Leaf("", "int64", (), num_categories=6)]


def untrained(observation: list[Leaf], **settings: Any) -> tuple[Actor, EnvSpec]:
    torch.manual_seed(0)
    actor = Actor(make_model(observation, ACTION, ModelConfig(**settings)), len(observation))
    return actor, EnvSpec.of("any", observation, ACTION)


@pytest.fixture
def savedir(tmp_path: Path) -> Path:
    write_run(tmp_path / "catch", "kubebeast_envserver.catch:Catch-v0", ModelConfig(model="mlp", use_lstm=True))
    return tmp_path


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("use_lstm", [False, True])
@pytest.mark.parametrize(
    ("observation", "model"),
    [(IMAGE, "shallow"), (IMAGE, "deep"), (VECTOR, "mlp"), (STRUCTURE, "mlp"), (STRUCTURE, "auto")],
)
def test_every_network_computes_the_same_at_every_batch_size(
    tmp_path: Path, observation: list[Leaf], model: str, use_lstm: bool, format: Format
) -> None:
    actor, spec = untrained(observation, model=model, use_lstm=use_lstm, initialisation="orthogonal")
    path = tmp_path / "model.pt2"
    write(actor, example_inputs(actor, spec), path, format)
    assert check(actor, spec, load(path, format)) <= 1e-5


@pytest.mark.parametrize("format", FORMATS)
def test_the_file_plays_alone_as_the_checkpoint_does(savedir: Path, format: Format) -> None:
    trained = load_trained(CheckpointConfig(savedir=str(savedir), xpid="catch"))
    export(trained, savedir / "model.pt2", format)
    exported = load(savedir / "model.pt2", format)
    calls: list[Any] = []
    with trained.model.register_forward_hook(lambda _, inputs, result: calls.append((inputs, result))):
        play(make_vector_env(trained.env_id, 2), trained.model, "greedy", torch.Generator(), 30)
    assert len(calls) == 9
    core_state: Sequence[torch.Tensor] = trained.model.initial_state(2)
    with torch.no_grad():
        for (inputs, _), (output, _) in calls:
            rows = inputs.map(lambda tensor: tensor.squeeze(0).clone())
            leaves = [*rows.observation, rows.reward, rows.last_action, rows.is_first]
            policy_logits, baseline, *core_state = exported(*leaves, *core_state)
            torch.testing.assert_close(policy_logits, output.policy_logits[0].clone(), rtol=1e-5, atol=1e-5)
            torch.testing.assert_close(baseline, output.baseline[0].clone(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("format", FORMATS)
def test_other_weights_are_noticed(tmp_path: Path, format: Format) -> None:
    actor, spec = untrained(VECTOR, model="mlp")
    write(actor, example_inputs(actor, spec), tmp_path / "model.pt2", format)
    with torch.no_grad():
        next(actor.parameters())[0, 0] += 0.01
    with pytest.raises(ExportError, match=r"policy_logits, step \d of 1 environments: the export differs by 0\.0"):
        check(actor, spec, load(tmp_path / "model.pt2", format))


def test_a_state_that_outlives_its_episode_is_noticed() -> None:
    actor, spec = untrained(VECTOR, model="mlp", use_lstm=True)

    def forgets_is_first(*inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        observation, reward, last_action, is_first, *core_state = inputs
        result: tuple[torch.Tensor, ...] = actor(observation, reward, last_action, is_first & False, *core_state)
        return result

    with pytest.raises(ExportError, match="the export differs"):
        check(actor, spec, forgets_is_first)


def test_another_shape_is_noticed() -> None:
    actor, spec = untrained(VECTOR, model="mlp")
    with pytest.raises(ExportError, match=r"baseline, .* gives torch.float32 \[1, 1\] for torch.float32 \[1\]"):
        check(actor, spec, lambda *inputs: (actor(*inputs)[0], actor(*inputs)[1].unsqueeze(1)))


@pytest.mark.parametrize("format", FORMATS)
def test_the_command_writes_the_model_and_its_description(
    savedir: Path, format: Format, capsys: pytest.CaptureFixture[str]
) -> None:
    out = savedir / "new" / ("catch.pt2" if format == "export" else "catch.pt")
    assert run(ExportConfig(savedir=str(savedir), xpid="catch", out=out, format=format)) == 0
    assert str(out) in capsys.readouterr().out
    assert sorted(path.name for path in out.parent.iterdir()) == sorted({out.name, "catch.json"})
    description = json.loads((out.parent / "catch.json").read_text())
    assert (description["env"], description["step"], description["format"]) == (
        "kubebeast_envserver.catch:Catch-v0",
        STEP,
        format,
    )
    inputs = {tensor["name"]: (tensor["dtype"], tensor["shape"]) for tensor in description["inputs"]}
    assert inputs == {
        "observation": ("float32", ["B", 10, 5]),
        "reward": ("float32", ["B"]),
        "last_action": ("int64", ["B"]),
        "is_first": ("bool", ["B"]),
        "core_state.0": ("float32", [1, "B", 64]),
        "core_state.1": ("float32", [1, "B", 64]),
    }
    arguments = [
        torch.zeros([4 if size == "B" else size for size in shape], dtype=getattr(torch, dtype))
        for dtype, shape in inputs.values()
    ]
    results = load(out, format)(*arguments)
    assert [[4 if size == "B" else size for size in tensor["shape"]] for tensor in description["outputs"]] == [
        list(result.shape) for result in results
    ]
    assert [tensor["name"] for tensor in description["outputs"]][:2] == ["policy_logits", "baseline"]


def test_a_failed_check_leaves_the_older_export(
    savedir: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    config = ExportConfig(savedir=str(savedir), xpid="catch", out=savedir / "model.pt2")
    run(config)
    before = (savedir / "model.pt2").read_bytes()

    def write_other_weights(actor: Actor, example: Any, path: Path, format: Format) -> None:
        other = copy.deepcopy(actor)
        next(other.parameters()).mul_(1.1)
        write(other, example, path, format)

    monkeypatch.setattr(export_module, "write", write_other_weights)
    assert run(config) == 1
    assert "the export differs by" in capsys.readouterr().err
    assert (savedir / "model.pt2").read_bytes() == before
    assert not (savedir / ".model.pt2").exists()


def test_a_model_that_cannot_be_followed_is_an_error(tmp_path: Path) -> None:
    actor, spec = untrained(VECTOR, model="mlp")

    def data_dependent(*inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        if np.asarray(inputs[0]).sum() > 0:
            raise RuntimeError("not for export")
        return inputs

    actor.forward = data_dependent  # type: ignore[method-assign]
    with pytest.raises(ExportError, match=r"format export: .*--format torchscript may"):
        write(actor, example_inputs(actor, spec), tmp_path / "model.pt2", "export")


def test_a_place_that_cannot_be_written_is_named(savedir: Path) -> None:
    (savedir / "file").touch()
    with pytest.raises(ConfigError, match=r"out = .*file/model\.pt2"):
        run(ExportConfig(savedir=str(savedir), xpid="catch", out=savedir / "file" / "model.pt2"))
