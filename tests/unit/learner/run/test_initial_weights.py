"""A new run begins with the weights of an earlier one, as far as its layers fit."""

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from kubebeast_learner.config import ConfigError, ModelConfig
from kubebeast_learner.models import Model, make_model
from kubebeast_learner.models.scales.moments import RunningMoments
from kubebeast_learner.run.checkpoint import FORMAT, CheckpointStore
from kubebeast_learner.run.checkpoint_file import CheckpointError
from kubebeast_learner.run.initial_weights import InitialWeights, read_initial, table_of, take_weights
from kubebeast_runs.storage.local import LocalStorage
from kubebeast_runs.weights import NAME
from tests.unit.learner.algorithm.learning_data import Leaf, discrete
from tests.unit.learner.training.scripted_actors import SPEC


def model_of(num_actions: int, *, numbers: int = 5, seed: int = 0) -> Model:
    torch.manual_seed(seed)
    config = ModelConfig(model="mlp", hidden_sizes=(8, 4), normalise_observations=True, normalise_values=True)
    return make_model([Leaf((numbers,))], [discrete(num_actions)], config)


def initial_of(model: nn.Module) -> InitialWeights:
    return InitialWeights(
        "earlier/checkpoint-1.pt", 1, {name: each.clone() for name, each in model.state_dict().items()}
    )


def state_of(step: int, model: Model) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "step": step,
        "env_spec": SPEC.to_plain(),
        "config": {},
        "learner": {"model": model.state_dict()},
    }


@pytest.fixture
def run_folder(tmp_path: Path) -> Path:
    """A run with checkpoints of the steps 10 and 20, of models with the seeds 10 and 20."""
    folder = tmp_path / "earlier"
    store = CheckpointStore(LocalStorage(folder), keep=5)
    for step in (10, 20):
        store.save(state_of(step, model_of(3, seed=step)))
    return folder


def test_layers_that_fit_are_taken_with_their_statistics_and_others_stay_new() -> None:
    earlier, model = model_of(3), model_of(6, seed=1)
    with torch.no_grad():
        for tensor in earlier.state_dict().values():
            tensor.add_(1)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    rows = take_weights(model, initial_of(earlier))
    new = {row.name for row in rows if row.reason}
    assert len(new) == 1 and next(iter(new)).startswith("policy")
    for name, tensor in model.state_dict().items():
        is_new = name.rpartition(".")[0] in new
        assert torch.equal(tensor, before[name] if is_new else earlier.state_dict()[name]), name
    assert {"normaliser.leaves.0", "baseline"} <= {row.name for row in rows} - new


def test_a_layer_is_taken_as_a_whole_or_not_at_all() -> None:
    earlier, model = model_of(3, numbers=7), model_of(3, seed=1)
    earlier.state_dict()["normaliser.leaves.0.count"].fill_(1000.0)
    rows = {row.name: row for row in take_weights(model, initial_of(earlier))}
    assert rows["normaliser.leaves.0"].reason == "new: [7] in the earlier model"
    assert model.state_dict()["normaliser.leaves.0.count"] == 0, "the number of rows belongs to their mean"


@pytest.mark.parametrize("num_rows", [3.0, 1e6])
def test_statistics_that_are_taken_soon_follow_another_environment(num_rows: float) -> None:
    earlier, model = model_of(3), model_of(3, seed=1)
    state = earlier.state_dict()
    state["normaliser.leaves.0.mean"].fill_(100.0)
    state["normaliser.leaves.0.count"].fill_(num_rows)
    state["normaliser.leaves.0.left_out"].fill_(num_rows / 2)
    take_weights(model, initial_of(earlier))
    moments = model.get_submodule("normaliser.leaves.0")
    assert isinstance(moments, RunningMoments)
    assert moments.mean.eq(100.0).all() and moments.left_out.eq(moments.count / 2).all()
    assert moments.count == min(num_rows, 256)
    for _ in range(100):
        moments.add(torch.zeros(256, 1, 5), torch.ones(256, 1, dtype=torch.bool))
    assert moments.mean.abs().max() < 1.0


def test_the_table_has_a_line_for_each_layer() -> None:
    rows = take_weights(model_of(6, seed=1), initial_of(model_of(3)))
    lines = table_of(rows).splitlines()
    assert len(lines) == len(rows)
    assert sum(line.endswith("taken") for line in lines) == len(rows) - 1
    assert next(line for line in lines if "new: " in line).endswith("in the earlier model")


def test_a_model_of_which_nothing_fits_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"init_from: no layer of earlier/checkpoint-1.pt fits the model: .*: new: "):
        take_weights(nn.Linear(2, 2), initial_of(model_of(3)))


def test_weights_that_are_not_finite_are_refused() -> None:
    earlier, model = model_of(3), model_of(3, seed=1)
    next(earlier.parameters()).data.fill_(torch.nan)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    with pytest.raises(ConfigError, match=r"init_from: earlier/checkpoint-1.pt: .* holds nan"):
        take_weights(model, initial_of(earlier))
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())


@pytest.mark.parametrize(
    ("source", "step"),
    [
        ("earlier", 20),
        ("earlier@10", 10),
        ("{}/earlier@20", 20),
        ("{}/earlier/checkpoint-000000000010.pt", 10),
        (f"{{}}/earlier/{NAME}", 20),
    ],
)
def test_a_source_is_a_run_a_step_of_it_or_a_file(source: str, step: int, run_folder: Path) -> None:
    initial = read_initial(source.format(str(run_folder.parent)), str(run_folder.parent))
    assert initial.step == step
    for name, tensor in model_of(3, seed=step).state_dict().items():
        assert torch.equal(initial.tensors[name], tensor)


def write_scores(folder: Path, name: str, scores: Mapping[int, float]) -> None:
    rows = "".join(f"{step},{score}\n" for step, score in scores.items())
    (folder / name).write_text(f"# step,mean_return\n{rows}")


def test_the_best_checkpoint_of_a_run_is_a_source(run_folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    savedir = str(run_folder.parent)
    store = CheckpointStore(LocalStorage(run_folder), keep=5)
    for step, score in {10: 5.0, 20: 1.0}.items():
        store.save({**state_of(step, model_of(3, seed=step)), "score": score})
    with caplog.at_level(logging.INFO):
        assert read_initial("earlier@best", savedir).step == 10
    assert "earlier@best names the best checkpoint by training: step 10, mean return 5.00" in caplog.text
    write_scores(run_folder, "eval-a.csv", {10: 1.0, 20: 2.0})
    assert read_initial("earlier@best", savedir).step == 20
    write_scores(run_folder, "eval-b.csv", {10: 2.0, 20: 1.0})
    assert read_initial("earlier@best:b", savedir).step == 10
    with pytest.raises(
        ConfigError, match=r"init_from = 'earlier@best': it is unclear which evaluator counts; .*: a, b"
    ):
        read_initial("earlier@best", savedir)
    with pytest.raises(ConfigError, match="init_from = 'earlier@best:c': the run has no scores of the evaluator 'c'"):
        read_initial("earlier@best:c", savedir)


def test_a_name_may_contain_an_at_sign(run_folder: Path) -> None:
    run_folder.rename(run_folder.with_name("me@home"))
    assert read_initial("me@home", str(run_folder.parent)).step == 20
    assert read_initial("me@home@10", str(run_folder.parent)).step == 10


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("other", r"init_from = 'other': there is no meta.json or weights.safetensors in other or .*/other"),
        ("earlier@15", r"init_from = 'earlier@15': .*/earlier has no checkpoint of step 15, it has: 10, 20"),
        ("empty", r"init_from = 'empty': there is no checkpoint in .*/empty"),
        ("earlier@best", r"init_from = 'earlier@best': no checkpoint in .*/earlier has a score, of an evaluator or of"),
        ("empty@3", r"init_from = 'empty@3': .*/empty has no checkpoint of step 3, it has: none"),
    ],
)
def test_a_source_that_does_not_exist_is_refused(source: str, reason: str, run_folder: Path) -> None:
    empty = run_folder.with_name("empty")
    empty.mkdir()
    (empty / "meta.json").write_text("{}")
    with pytest.raises(ConfigError, match=reason):
        read_initial(source, str(run_folder.parent))


def test_a_file_that_is_no_checkpoint_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint-1.pt"
    path.write_bytes(b"no zip archive")
    with pytest.raises(CheckpointError, match=r"checkpoint-1\.pt cannot be read"):
        read_initial(str(path), str(tmp_path))
