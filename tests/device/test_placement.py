"""Tensors of the user's code that would stay on the CPU are found without a GPU, before the training begins."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from kubebeast_common.spec.env_spec import EnvSpec
from kubebeast_common.spec.leaves import Leaf
from kubebeast_learner.algorithm.losses import LossOutput, LossPart
from kubebeast_learner.algorithm.placement import check_placement
from kubebeast_learner.algorithm.rollout import Rollout
from kubebeast_learner.config import (
    ConfigError,
    FleetTrainingConfig,
    LossConfig,
    ModelConfig,
    OptimizerConfig,
    PoolConfig,
    TrainingConfig,
)
from kubebeast_learner.models import LeafSpec, ModelInputs, ModelOutput, make_model
from kubebeast_learner.training import build
from tests.unit.learner.algorithm.learning_data import VECTOR, discrete

MODULE = __name__
SPEC = EnvSpec("Test-v0", (Leaf("position", "float32", (5,), 1, 0),), (Leaf("action", "int64", (), 1, 3),))


class Net(nn.Module):
    """A good model; `kind` plants a fault."""

    def __init__(self, observation: Sequence[LeafSpec], num_actions: int, kind: str = "") -> None:
        super().__init__()
        self._kind = kind
        self.layer = nn.Linear(5, num_actions + 1)
        self.register_buffer("offset", torch.zeros(5))
        self.offset: Tensor
        self._plain = torch.zeros(5)

    def initial_state(self, batch_size: int) -> tuple[Tensor, ...]:
        return (torch.zeros(1, batch_size, 2),) if self._kind == "remembers on the CPU" else ()

    def forward(self, inputs: ModelInputs, core_state: tuple[Tensor, ...]) -> tuple[ModelOutput, tuple[Tensor, ...]]:
        rows = inputs.observation[0] + (self._plain if self._kind == "plain" else self.offset)
        if self._kind == "looks at values" and bool(inputs.is_first.any()):
            rows = rows * 1.0
        made = torch.zeros(rows.shape[0], 1) if self._kind == "makes its own" else 0.0
        output = self.layer(rows)
        if self._kind == "remembers on the CPU":
            core_state = (torch.zeros(core_state[0].shape),)
        return ModelOutput(output[..., :-1], output[..., -1] + made), core_state


class Eye(nn.Module):
    def __init__(self, leaf: LeafSpec, plain: bool = False) -> None:
        super().__init__()
        self.output_size = 5
        self._scale = torch.ones(5) if plain else 1.0
        self.layer = nn.Linear(5, 5)

    def forward(self, rows: Tensor) -> Tensor:
        features: Tensor = self.layer(rows * self._scale)
        return features


def loss(
    output: ModelOutput, rollout: Rollout, config: LossConfig, entropy_cost: Tensor, plain: bool = False
) -> LossOutput:
    errors = output.baseline[:-1] - rollout.rewards[1:]
    if plain:
        errors = errors * torch.ones(rollout.unroll_length, 1)
    value = errors.square().mean() + output.policy_logits.square().mean()
    return LossOutput(total=value, parts={"square": LossPart(value)}, value_targets=None)


class Scaled(torch.optim.SGD):
    """An optimizer with a tensor of its own, which a fault keeps on the CPU."""

    def __init__(self, parameters: Iterable[nn.Parameter], lr: float, plain: bool = False) -> None:
        super().__init__(parameters, lr=lr)
        self._plain = plain

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        for group in self.param_groups:
            for parameter in group["params"]:
                scale = torch.ones(parameter.shape, device="cpu" if self._plain else parameter.device)
                parameter.sub_(group["lr"] * scale * parameter.grad)


def config_of(
    model: ModelConfig, own_loss: LossConfig | None = None, optimizer: OptimizerConfig | None = None
) -> TrainingConfig:
    return TrainingConfig(model=model, loss=own_loss or LossConfig(), optimizer=optimizer or OptimizerConfig())


def scaled(*, plain: bool) -> OptimizerConfig:
    return OptimizerConfig(optimizer=f"{MODULE}:Scaled", optimizer_options=f'{{"plain": {str(plain).lower()}}}')


def net(kind: str) -> ModelConfig:
    return ModelConfig(model=f"{MODULE}:Net", model_options=f'{{"kind": "{kind}"}}')


def eye(**options: Any) -> ModelConfig:
    plain = str(options.get("plain", False)).lower()
    return ModelConfig(encoder=(f".={MODULE}:Eye",), encoder_options=f'{{".": {{"plain": {plain}}}}}', use_lstm=True)


def check(config: TrainingConfig) -> None:
    check_placement(config, make_model([VECTOR], [discrete(3)], config.model), [VECTOR])


@pytest.mark.parametrize("kind", ["plain", "makes its own"])
def test_a_model_with_a_tensor_that_stays_behind_is_named(kind: str) -> None:
    with pytest.raises(ConfigError, match=r"model = '.*:Net': computes with a tensor that stays on the CPU"):
        check(config_of(net(kind)))


def test_an_encoder_with_a_tensor_that_stays_behind_is_named() -> None:
    with pytest.raises(ConfigError, match=r"encoder = '.*:Eye': computes with a tensor that stays on the CPU"):
        check(config_of(eye(plain=True)))


def test_a_core_state_that_stays_behind_is_named() -> None:
    with pytest.raises(ConfigError, match=r"model = '.*:Net': an output stays on the CPU"):
        check(config_of(net("remembers on the CPU")))


def test_an_optimizer_with_a_tensor_that_stays_behind_is_named() -> None:
    with pytest.raises(ConfigError, match=r"optimizer = '.*:Scaled': computes with a tensor that stays on the CPU"):
        check(config_of(ModelConfig(), optimizer=scaled(plain=True)))


def test_a_loss_with_a_tensor_that_stays_behind_is_named() -> None:
    own = LossConfig(loss=f"{MODULE}:loss", loss_options='{"plain": true}')
    with pytest.raises(ConfigError, match=r"loss = '.*:loss': computes with a tensor that stays on the CPU"):
        check(config_of(ModelConfig(), own))


@pytest.mark.parametrize(
    "config",
    [
        config_of(net("")),
        config_of(net("looks at values")),
        config_of(eye()),
        config_of(ModelConfig(), LossConfig(loss=f"{MODULE}:loss")),
        config_of(ModelConfig(), optimizer=scaled(plain=False)),
    ],
)
def test_code_that_moves_with_its_inputs_is_taken(config: TrainingConfig) -> None:
    check(config)


@pytest.fixture
def gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes every name of a device one that is there."""
    monkeypatch.setattr(build, "choose_device", lambda name, *_: torch.device(name))
    monkeypatch.setattr(build, "choose_inference_devices", lambda names, *_: [torch.device(each) for each in names])


def training(config: TrainingConfig, *, device: str, inference_device: str = "auto") -> TrainingConfig:
    run, pool = replace(config.run, device=device), PoolConfig(inference_device=inference_device)
    return FleetTrainingConfig(model=config.model, loss=config.loss, run=run, pool=pool)


@pytest.mark.usefixtures("gpus")
@pytest.mark.parametrize(("device", "inference_device"), [("cuda:0", "auto"), ("cpu", "cuda:0"), ("cuda:0", "cpu")])
def test_a_training_with_a_gpu_is_checked(device: str, inference_device: str) -> None:
    config = training(config_of(net("plain")), device=device, inference_device=inference_device)
    with pytest.raises(ConfigError, match="stays on the CPU"):
        build.assemble_model(config, SPEC)


@pytest.mark.usefixtures("gpus")
def test_a_training_without_a_gpu_may_use_tensors_of_the_cpu() -> None:
    build.assemble_model(training(config_of(net("plain")), device="cpu"), SPEC)


@pytest.mark.usefixtures("gpus")
def test_a_gpu_that_only_plays_needs_the_model_alone() -> None:
    own = LossConfig(loss=f"{MODULE}:loss", loss_options='{"plain": true}')
    build.assemble_model(training(config_of(ModelConfig(), own), device="cpu", inference_device="cuda:0"), SPEC)
