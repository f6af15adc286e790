"""Puts the rooms of one run together: the model for the environment, its learner, its inference, its saved state."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from kubebeast_learner.checkpoint import restore_rng_state
from kubebeast_learner.config import ConfigError, LearnerConfig, ModelConfig
from kubebeast_learner.config_sources import as_settings
from kubebeast_learner.env_spec import EnvSpec
from kubebeast_learner.inference import CoreStateTable, InferenceWorker
from kubebeast_learner.learner import Learner
from kubebeast_learner.models import Model, ModelSpecError, make_model
from kubebeast_learner.weights import WeightPublisher
from kubebeast_native import ActorPool


@dataclass(frozen=True, kw_only=True, slots=True)
class Rooms:
    """What trains and what acts; nothing runs yet."""

    learner: Learner
    weights: WeightPublisher
    workers: list[InferenceWorker]

    @property
    def model(self) -> Model:
        return self.learner.model


def assemble(
    config: LearnerConfig, spec: EnvSpec, pool: ActorPool, saved: tuple[Path, Mapping[str, Any]] | None
) -> Rooms:
    """Builds everything for the environment `spec`, as it was `saved` where there is a checkpoint (its path and state).

    ConfigError when the model cannot take the environment, the device is not here, or the checkpoint is another's.
    """
    run = config.run
    device = choose_device(run.device)
    try:
        model = make_model(spec.observation, spec.action, config.model)
    except ModelSpecError as error:
        raise ConfigError(f"model = {config.model.model!r}: {error}") from error
    learner = Learner(model, config.optimizer, config.loss, device=device, precision=run.precision, compile=run.compile)
    if saved is not None:
        _restore(config, spec, learner, *saved)
    weights = WeightPublisher(model, device=device, precision=run.precision, version=learner.version)
    core_states = CoreStateTable(model, config.rollout.max_envs, device) if model.core_state_size else None
    num_workers = config.rollout.num_inference_threads
    # A resumed run must not sample again what it has sampled before.
    first_seed = (run.seed << 32) + learner.version * num_workers
    workers = [
        InferenceWorker(
            pool,
            weights,
            core_states=core_states,
            device=device,
            seed=first_seed + index,
            action_dtype=spec.action[0].dtype,
        )
        for index in range(num_workers)
    ]
    return Rooms(learner=learner, weights=weights, workers=workers)


def choose_device(name: str) -> torch.device:
    """auto is cuda where there is one, else cpu. ConfigError for a device that is not here."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:  # torch built without CUDA raises AssertionError
        raise ConfigError(f"device = {name!r}: {error}") from error
    return device


def _restore(config: LearnerConfig, spec: EnvSpec, learner: Learner, path: Path, state: Mapping[str, Any]) -> None:
    if difference := EnvSpec.from_plain(state["env_spec"]).difference(spec):
        raise ConfigError(f"xpid = {config.run.xpid!r}: {path} was trained on another environment: {difference}")
    for name, wanted in as_settings(config.model).items():
        saved = state["config"].get(name, as_settings(ModelConfig())[name])
        if saved != wanted:
            raise ConfigError(f"{name} = {wanted!r}: {path} was trained with {saved!r}")
    if state["config"]["optimizer"] != config.optimizer.optimizer:
        raise ConfigError(
            f"optimizer = {config.optimizer.optimizer!r}: {path} was trained with {state['config']['optimizer']!r}"
        )
    learner.load_state_dict(state["learner"])
    restore_rng_state(state["rng"])
