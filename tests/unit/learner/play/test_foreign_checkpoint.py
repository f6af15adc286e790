"""Code in a foreign checkpoint runs only if the user allows it, and a malformed checkpoint is a clear error."""

import json
import math
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from kubebeast_common.cli import main as cli
from kubebeast_common.spec.env_config import Wrapper
from kubebeast_learner.config import CheckpointConfig, ConfigError, EvalConfig, ModelConfig
from kubebeast_learner.play.evaluate import evaluate
from kubebeast_learner.play.export_description import describe
from kubebeast_learner.play.trained_model import load_trained
from kubebeast_learner.run.checkpoint_file import CheckpointError
from tests.unit.learner.play.playing import write_run

MODULE = """
from pathlib import Path
Path("imported").touch()
import gymnasium
import torch
from kubebeast_learner.models import ModelOutput

class Encoder(torch.nn.Module):
    output_size = 4
    def __init__(self, leaf):
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)
    def forward(self, rows):
        return self.linear(rows)

class Net(torch.nn.Module):
    def __init__(self, observation, num_actions):
        super().__init__()
        self.linear = torch.nn.Linear(4, num_actions + 1)
    def initial_state(self, batch_size):
        return ()
    def forward(self, inputs, core_state):
        outputs = self.linear(inputs.observation[0])
        return ModelOutput(outputs[..., 1:], outputs[..., 0]), core_state

gymnasium.registry.pop("Own-v0", None)
gymnasium.register("Own-v0", "gymnasium.envs.classic_control:CartPoleEnv", max_episode_steps=5)
"""
SETTINGS = {
    "model": ModelConfig(model="foreign_code:Net"),
    "encoder": ModelConfig(encoder=(".=foreign_code:Encoder",)),
    "env": ModelConfig(model="mlp"),
}


@pytest.fixture
def checkpoint(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A checkpoint that names the module foreign_code of the working directory; that module records its import."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "foreign_code.py").write_text(MODULE)
    named: str = getattr(request, "param", "model")
    env = "foreign_code:Own-v0" if named == "env" else "CartPole-v1"
    (path,) = write_run(tmp_path / "run", env, SETTINGS[named]).glob("*.pt")
    sys.modules.pop("foreign_code", None)
    (tmp_path / "imported").unlink()
    yield path
    sys.modules.pop("foreign_code", None)


@pytest.mark.parametrize("command", ["eval", "render", "export"])
@pytest.mark.parametrize("checkpoint", list(SETTINGS), indirect=True)
def test_code_that_a_file_names_is_not_imported_without_the_users_word(
    checkpoint: Path, command: str, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    out = {"render": ["--out=a.gif"], "export": ["--out=a.pt2"]}.get(command, [])
    status = cli.main([command, f"--checkpoint={checkpoint}", *out])
    # An export of a built-in model needs no environment, and describes the known part of it.
    is_description = command == "export" and "env" in request.node.callspec.params["checkpoint"]
    if is_description:
        assert status == 0 and "--trust-checkpoint" in json.loads(Path("a.json").read_text())["environment"]["notes"][0]
    else:
        assert status == 2 and "--trust-checkpoint" in capsys.readouterr().err
    assert not Path("imported").exists() and "foreign_code" not in sys.modules


@pytest.mark.parametrize("checkpoint", list(SETTINGS), indirect=True)
def test_a_file_that_is_trusted_and_a_run_that_is_named_are_played(checkpoint: Path) -> None:
    assert evaluate(EvalConfig(checkpoint=checkpoint, trust_checkpoint=True, episodes=1)).episodes
    assert evaluate(EvalConfig(savedir=str(checkpoint.parents[1]), xpid="run", episodes=1)).episodes


@pytest.mark.parametrize("checkpoint", ["env"], indirect=True)
def test_an_environment_that_the_user_names_is_trusted(checkpoint: Path) -> None:
    assert evaluate(EvalConfig(checkpoint=checkpoint, env="foreign_code:Own-v0", episodes=1)).episodes


def test_trust_in_a_file_is_none_in_wrappers(tmp_path: Path) -> None:
    wrappers = [Wrapper("gymnasium.wrappers:TimeAwareObservation")]
    (path,) = write_run(tmp_path / "run", "CartPole-v1", ModelConfig(model="mlp"), wrappers=wrappers).glob("*.pt")
    with pytest.raises(ConfigError, match="--wrappers train"):
        evaluate(EvalConfig(checkpoint=path, trust_checkpoint=True, episodes=1))


def test_a_module_of_pettingzoo_is_code_that_an_id_names(tmp_path: Path) -> None:
    spec_of = write_run(tmp_path / "cartpole", "CartPole-v1", ModelConfig(model="mlp"))
    (path,) = spec_of.glob("*.pt")
    changed(path, lambda state: state["env_spec"].update(env_id="pettingzoo/foreign_code"))
    with pytest.raises(ConfigError, match="imports foreign_code: add --env pettingzoo/foreign_code"):
        evaluate(EvalConfig(checkpoint=path, episodes=1))


def changed(path: Path, change: Callable[[dict[str, Any]], object]) -> Path:
    state = torch.load(path, weights_only=True)
    change(state)
    torch.save(state, path)
    return path


def leaf(**values: Any) -> Callable[[dict[str, Any]], object]:
    return lambda state: state["env_spec"]["observation"][0].update(values)


def put(**values: Any) -> Callable[[dict[str, Any]], object]:
    return lambda state: state.update(values)


def config(**values: Any) -> Callable[[dict[str, Any]], object]:
    return lambda state: state["config"].update(values)


def weight(tensor: Any) -> Callable[[dict[str, Any]], object]:
    return lambda state: state["learner"]["model"].update({"torso.layers.0.weight": tensor})


def nested(depth: int, *, copies: int = 1) -> list[Any]:
    """Returns a list of lists, in each of which the next one stands `copies` times."""
    value: list[Any] = []
    for _ in range(depth):
        value = [value] * copies
    return value


def within_itself() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


MALFORMED = {
    "step nan": (put(step=math.nan), "step: it is nan"),
    "step text": (put(step="9"), "step: it is '9'"),
    "step below 0": (put(step=-1), "step: it is -1"),
    "step true": (put(step=True), "step: it is True"),
    "step huge": (put(step=10**40), "step: it is 1000"),
    "env_spec none": (put(env_spec=None), "env_spec: it is NoneType"),
    "env_spec empty": (put(env_spec={}), "env_spec: there is no action, env_id, observation"),
    "env_spec list": (put(env_spec=[1]), "env_spec: it is list"),
    "env_id number": (lambda state: state["env_spec"].update(env_id=5), "env_spec: env_id is 5"),
    "leaves none": (lambda state: state["env_spec"].update(observation=None), "observation is None"),
    "leaf number": (lambda state: state["env_spec"].update(action=[4]), "a leaf is 4"),
    "leaf lacks": (lambda state: state["env_spec"]["action"][0].pop("dtype"), "a leaf lacks or has dtype"),
    "leaf has more": (leaf(colour="red"), "a leaf lacks or has colour"),
    "dtype unknown": (leaf(dtype="load"), "a leaf has dtype 'load'"),
    "dtype list": (leaf(dtype=["float32"]), "a leaf has dtype"),
    "shape below 0": (leaf(shape=(-4,)), "a leaf has shape"),
    "shape text": (leaf(shape="4"), "a leaf has shape"),
    "shape huge": (leaf(shape=(2**40,)), "a leaf has shape"),
    "shape long": (leaf(shape=(2**20, 2**20)), "more than"),
    "shape of weights that are not there": (leaf(shape=(2**30,)), "does not fit its model"),
    "categories": (leaf(num_categories=2.5), "a leaf has num_categories 2.5"),
    "env_config": (lambda state: state["env_spec"].update(env_config={"preset": 4}), "env_spec: preset is 4"),
    "config none": (put(config=None), "config: it is NoneType"),
    "config keys": (put(config={4: 5}), "config: it is a mapping with other keys"),
    "hidden_sizes text": (config(hidden_sizes=["a"]), "config: "),
    "hidden_sizes number": (config(hidden_sizes=7), "config: "),
    "hidden_sizes huge": (config(hidden_sizes=[2**40, 2**40]), "does not fit its model"),
    "hidden_sizes large": (config(hidden_sizes=[10**6, 10**6]), "does not fit its model"),
    "model number": (config(model=5), "config: "),
    "task_shares": (config(task_shares=5), "config: "),
    "wrappers": (config(wrappers="[4]"), "config: "),
    "task_configs": (put(task_configs={"Pong": 4}), "task_configs: not a JSON object"),
    "task_configs list": (put(task_configs=[4]), "task_configs: it is list"),
    "learner none": (put(learner=None), "learner.model: it is NoneType"),
    "learner empty": (put(learner={}), "learner.model: there is no 'model'"),
    "model empty": (put(learner={"model": {}}), "does not fit its model"),
    "weight none": (weight(None), "is NoneType None, not a tensor"),
    "weight of another shape": (weight(torch.zeros(3)), "does not fit its model"),
    "weight that only seems large": (weight(torch.zeros(1).expand(2**40)), "does not fit its model"),
    "weight of another kind": (weight(torch.zeros(2, 2).to_sparse()), "layout torch.sparse_coo"),
    "format": (put(format=None), "format None"),
    "a list within itself": (put(rng=within_itself()), "nested more than 64 levels deep"),
    "a list in many levels": (put(config=nested(100)), "nested more than 64 levels deep"),
    "lists of lists without an end": (put(env_statistics=nested(40, copies=2)), "more values than the file has room"),
}


@pytest.fixture
def trained(tmp_path: Path) -> Path:
    (path,) = write_run(tmp_path / "run", "CartPole-v1", ModelConfig(model="mlp")).glob("*.pt")
    return path


@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_state_is_an_error_that_names_file_and_value(trained: Path, name: str) -> None:
    change, reason = MALFORMED[name]
    changed(trained, change)
    with pytest.raises(CheckpointError, match=f"{re.escape(str(trained))}.*{re.escape(reason)}"):
        load_trained(CheckpointConfig(checkpoint=trained))


@pytest.mark.parametrize("command", ["eval", "render", "export"])
@pytest.mark.parametrize(
    "damage", [lambda path: path.write_bytes(path.read_bytes()[:300]), lambda path: path.write_bytes(b"no zip"), None]
)
def test_the_commands_say_what_is_wrong_without_a_traceback(
    trained: Path, command: str, damage: Callable[[Path], object] | None, capsys: pytest.CaptureFixture[str]
) -> None:
    changed(trained, put(step=math.nan)) if damage is None else damage(trained)
    assert cli.main([command, f"--checkpoint={trained}"]) == 1
    output = capsys.readouterr()
    assert f"kubebeast {command}: checkpoint {trained}" in output.err and "Traceback" not in output.err


@pytest.mark.parametrize("use_lstm", [False, True])
@pytest.mark.parametrize(
    "model",
    [{"model": "mlp", "initialisation": "orthogonal"}, {"normalise_observations": True, "normalise_values": True}],
)
def test_models_of_every_kind_are_read(tmp_path: Path, model: dict[str, Any], use_lstm: bool) -> None:
    (path,) = write_run(tmp_path / "run", "CartPole-v1", ModelConfig(**model, use_lstm=use_lstm)).glob("*.pt")
    trained = load_trained(CheckpointConfig(checkpoint=path))
    assert not any(parameter.is_meta for parameter in trained.model.parameters())
    assert describe(trained)["env"] == "CartPole-v1"
