"""Construction of a run's learner: the model for its environment, and the state of a checkpoint if there is one."""

import logging

import torch

from kubebeast_common.spec.env_spec import EnvSpec
from kubebeast_learner.algorithm.learner import Learner
from kubebeast_learner.algorithm.loss_choice import check_loss
from kubebeast_learner.algorithm.optimizers import check_optimizer
from kubebeast_learner.algorithm.options.passes import fitted
from kubebeast_learner.algorithm.placement import check_placement
from kubebeast_learner.algorithm.precision import should_use_graphs
from kubebeast_learner.config import ConfigError, FleetTrainingConfig, TrainingConfig
from kubebeast_learner.config.plugins import load_object
from kubebeast_learner.machine.cuda_graph import GraphRecorder
from kubebeast_learner.models import Model, ModelSpecError, describe_inputs, make_model
from kubebeast_learner.ranks.devices import choose_device, choose_inference_devices
from kubebeast_learner.ranks.place import ALONE, Place
from kubebeast_learner.run.checkpoint import restore_rng_state
from kubebeast_learner.run.initial_weights import InitialWeights, table_of, take_weights
from kubebeast_learner.run.state import Checkpoint, taking_over
from kubebeast_learner.training.sizes import check_memory

logger = logging.getLogger(__name__)

MIN_SHARED_WEIGHTS = 500_000
"""Smallest model whose operations several threads share by default: shorter ones gain nothing, and lose much if another
program has the core of one thread, as the others wait for it after every operation."""
_CLIPPING = {
    "abs_one": "; the loss clips rewards to [-1, 1]",
    "soft_asymmetric": "; the loss squeezes rewards into (-1.5, 5)",
    "none": "",
}
"""Remarks on reward_clipping."""


def load_user_code(config: TrainingConfig) -> None:
    """Imports models, encoders, losses and optimizers of the user's own, independently of the environment.

    Raises ConfigError if one of them cannot be loaded.
    """
    for setting, name in config.user_code:
        load_object(setting, name)


def assemble_model(config: TrainingConfig, spec: EnvSpec, place: Place = ALONE, *, is_named: bool = True) -> Model:
    """Returns the model for the environment `spec`, with new weights, on the CPU.

    Args:
        is_named: True if a setting or a checkpoint names the environment; otherwise MAX_UNNAMED_BYTES is its limit.

    Raises:
        ConfigError: If the model cannot take the environment or needs more memory than there is, or if code of the
            user's own breaks its contract.
    """
    try:
        check_memory(config, spec, is_named=is_named)
        model = make_model(spec.observation, spec.action, config.model, config.tasks.num_tasks)
    except ModelSpecError as error:
        raise ConfigError(f"model = {config.model.model!r}: {error}") from error
    torso = type(getattr(model, "torso", model)).__name__
    inputs = describe_inputs(model, spec.observation)
    logger.info("%s takes %s%s", torso, inputs, _CLIPPING[config.loss.reward_clipping])
    check_loss(config.loss, model, spec.observation, several_ranks=not place.is_alone)
    check_optimizer(config.optimizer, model)
    if config.user_code:
        _check_on_gpus(config, model, spec, place)
    return model


def _check_on_gpus(config: TrainingConfig, model: Model, spec: EnvSpec, place: Place) -> None:
    """Tries the user's code for the GPUs of a training, if there are any."""
    names = config.pool.inference_devices if isinstance(config, FleetTrainingConfig) else ()
    trains = choose_device(config.run.device, place).type != "cpu"
    plays = any(device.type != "cpu" for device in choose_inference_devices(names, place))
    if trains or plays:
        check_placement(config, model, spec.observation, trains=trains)


def assemble_learner(
    config: TrainingConfig,
    spec: EnvSpec,
    saved: tuple[str, Checkpoint] | None,
    place: Place = ALONE,
    model: Model | None = None,
    initial: InitialWeights | None = None,
) -> Learner:
    """Returns the learner for the environment `spec`, with the state of the checkpoint if there is one.

    Args:
        saved: Place and content of the checkpoint, or None.
        model: A result of assemble_model, which is called if this is None.
        initial: Weights that a model without a checkpoint begins with, as far as they fit.

    Raises:
        ConfigError: As in assemble_model, and if the device does not exist, the checkpoint is of another
            environment, or no initial weights fit.
        CheckpointError: If the state of the checkpoint does not fit the learner.
    """
    run = config.run
    device = choose_device(run.device, place)
    model = model or assemble_model(config, spec, place)
    if initial is not None and saved is None:
        rows = take_weights(model, initial)
        logger.info("the weights of %s, step %d, by layer:\n%s", initial.place, initial.step, table_of(rows))
    if run.learner_threads == 0 and sum(weight.numel() for weight in model.parameters()) < MIN_SHARED_WEIGHTS:
        torch.set_num_threads(1)
    uses_graphs = should_use_graphs(config, device)
    learner = Learner(
        model,
        config.optimizer,
        config.loss,
        schedule_steps=run.total_steps if run.schedule_steps is None else run.schedule_steps,
        passes=fitted(config, model),
        device=device,
        precision=run.precision,
        compile="off" if run.compile == "auto" and not place.is_alone else run.compile,
        recorder=GraphRecorder(device) if uses_graphs and place.is_alone else None,
    )
    if saved is not None:
        _restore(config, spec, learner, *saved)
    return learner


def _restore(config: TrainingConfig, spec: EnvSpec, learner: Learner, place: str, checkpoint: Checkpoint) -> None:
    if difference := checkpoint.env_spec.difference(spec):
        raise ConfigError(f"xpid = {config.run.xpid!r}: {place} was trained on another environment: {difference}")
    with taking_over(place, "learner"):
        learner.load_state_dict(dict(checkpoint.learner))
    with taking_over(place, "rng"):
        restore_rng_state(checkpoint.rng)
