"""Bytes copied from the host to a GPU for each env-step: once for inference, once for training."""

import dataclasses

from benchmarks.cell import Cell
from benchmarks.gpu.settings import NETWORKS, Network
from benchmarks.recorded_env import action_leaves, observation_leaves
from kubebeast_common.spec.env_spec import EnvSpec
from kubebeast_learner.algorithm.made_up import made_up_rollout, with_single_frames
from kubebeast_learner.algorithm.rollout import tensors_of
from kubebeast_learner.config import ModelConfig
from kubebeast_learner.models import Model, make_model
from kubebeast_learner.tune.learner_probe import made_up_batch

FRAME_STACK = 4


@dataclasses.dataclass(frozen=True, slots=True)
class Transfers:
    """Bytes per env-step by the shapes of the copied arrays; a learner on a CPU copies nothing."""

    inference_bytes_per_step: float
    training_bytes_per_step: float
    """Bytes for training; row T of an unroll is row 0 of the next, so it is copied twice."""


def transfers(network: Network, unroll_length: int, batch_size: int) -> Transfers:
    """Returns the bytes for 84 x 84 frames in stacks of four, with each frame copied once.

    The complete stacks of first rows are not counted.
    """
    cell = Cell(streams=1, num_envs=1, frame_stack=FRAME_STACK)
    spec = EnvSpec.of("Recorded-v0", observation_leaves(cell), action_leaves())
    model = make_model(spec.observation, spec.action, _model_config(network))
    whole = made_up_rollout(model, spec.observation, unroll_length, batch_size)
    rollout = with_single_frames(whole, spec.observation)
    training = sum(tensor.nbytes for tensor in tensors_of(rollout)) / (unroll_length * batch_size)
    return Transfers(_inference_bytes(spec, model), training)


def _model_config(network: Network) -> ModelConfig:
    name = next(flag.partition("=")[2] for flag in NETWORKS[network] if flag.startswith("--model="))
    return ModelConfig(model=name, use_lstm="--use-lstm" in NETWORKS[network])


def _inference_bytes(spec: EnvSpec, model: Model) -> float:
    batch = made_up_batch(spec, model, 1, single_frames=True)
    arrays = [*batch.observation, batch.rewards, *batch.last_actions, batch.is_first, batch.slots]
    if model.core_state_size:
        arrays.append(batch.unroll_start)
    return float(sum(array.nbytes for array in arrays))
