"""Builds the learner of one run: the model for its environment, as it was saved where there is a checkpoint."""

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kubebeast_learner.actors.env_spec import EnvSpec
from kubebeast_learner.algorithm.learner import Learner
from kubebeast_learner.algorithm.loss_choice import check_loss
from kubebeast_learner.algorithm.optimizers import check_optimizer
from kubebeast_learner.config import ConfigError, TrainingConfig
from kubebeast_learner.models import ModelSpecError, describe_inputs, make_model
from kubebeast_learner.ranks.devices import choose_device
from kubebeast_learner.ranks.place import ALONE, Place
from kubebeast_learner.run.checkpoint import restore_rng_state

logger = logging.getLogger(__name__)


def assemble_learner(
    config: TrainingConfig, spec: EnvSpec, saved: tuple[Path, Mapping[str, Any]] | None, place: Place = ALONE
) -> Learner:
    """The learner for the environment `spec`, as it was `saved` where there is a checkpoint (its path and state).

    ConfigError when the model cannot take the environment, something of the user's own breaks its contract, the device
    is not here, or the checkpoint is another's.
    """
    run = config.run
    device = choose_device(run.device, place)
    try:
        model = make_model(spec.observation, spec.action, config.model, config.tasks.num_tasks)
    except ModelSpecError as error:
        raise ConfigError(f"model = {config.model.model!r}: {error}") from error
    logger.info("%s takes %s", type(getattr(model, "torso", model)).__name__, describe_inputs(model, spec.observation))
    check_loss(config.loss, model, spec.observation, several_ranks=not place.is_alone)
    check_optimizer(config.optimizer, model)
    learner = Learner(
        model,
        config.optimizer,
        config.loss,
        total_steps=run.total_steps,
        device=device,
        precision=run.precision,
        compile="off" if run.compile == "auto" and not place.is_alone else run.compile,
    )
    if saved is not None:
        _restore(config, spec, learner, *saved)
    return learner


def _restore(config: TrainingConfig, spec: EnvSpec, learner: Learner, path: Path, state: Mapping[str, Any]) -> None:
    if difference := EnvSpec.from_plain(state["env_spec"]).difference(spec):
        raise ConfigError(f"xpid = {config.run.xpid!r}: {path} was trained on another environment: {difference}")
    learner.load_state_dict(state["learner"])
    restore_rng_state(state["rng"])
