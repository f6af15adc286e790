"""Minimum memory of a training, computed before its model is made."""

from dataclasses import replace

from kubebeast_common.spec.env_spec import EnvSpec
from kubebeast_learner.config import FleetTrainingConfig, TrainingConfig
from kubebeast_learner.distributions import ActionDistribution
from kubebeast_learner.machine.memory import memory_bytes
from kubebeast_learner.models import ModelSpecError, make_model
from kubebeast_learner.models.sizes import check_sizes, model_bytes, row_bytes

MAX_UNNAMED_BYTES = 4 << 30
"""Limit of model and batch for an environment that only a peer has named."""
COPIES = 4
"""Minimum number of copies of a model: weights, gradients, optimizer state, the actors' weights."""
_GIB = 1 << 30


def check_memory(config: TrainingConfig, spec: EnvSpec, *, is_named: bool) -> None:
    """Raises ModelSpecError if model, batch, core states and replay need more memory than the machine has.

    If not `is_named`, that is if neither a setting nor a checkpoint names the environment, model and batch are also
    limited to MAX_UNNAMED_BYTES. A model or an encoder of the user's own counts as 0: its code allocates freely.
    """
    check_sizes(spec.observation, spec.action)
    model, core_state = _model_bytes(config, spec)
    logits = ActionDistribution.of(spec.action, config.model.bounded_actions).num_logits
    unroll = (config.rollout.unroll_length + 1) * (row_bytes(spec.observation) + 4 * logits)
    batch = config.rollout.batch_size * unroll
    replay = config.replay.room(config.rollout.batch_size) * unroll
    num_slots = config.pool.max_envs if isinstance(config, FleetTrainingConfig) else 0
    least = COPIES * model + batch
    total = least + replay + num_slots * core_state
    needs = f"a model of {_gib(model)} and a batch of {_gib(batch)}, {_gib(total)} in all"
    if not is_named and least > MAX_UNNAMED_BYTES:
        raise ModelSpecError(
            f"{spec.env_id} takes {needs}: at most {_gib(MAX_UNNAMED_BYTES)} for one that --env does not name"
        )
    memory = memory_bytes()
    if memory is not None and total > memory:
        raise ModelSpecError(f"{spec.env_id} takes {needs}: this machine has {_gib(memory)}")


def _model_bytes(config: TrainingConfig, spec: EnvSpec) -> tuple[int, int]:
    model = config.model
    if ":" in model.model or model.encoders:
        return 0, 0
    plain = replace(model, initialisation="pytorch")  # with weights of the same sizes
    return model_bytes(lambda: make_model(spec.observation, spec.action, plain, config.tasks.num_tasks))


def _gib(num_bytes: int) -> str:
    return f"{num_bytes / _GIB:,.3g} GiB"
