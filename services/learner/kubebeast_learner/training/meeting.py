"""Start of a training: ranks wait for room to save, and until all have one environment and its model."""

import logging
import threading
from dataclasses import dataclass
from typing import Generic, TypeVar

import torch

from kubebeast_common.spec.env_spec import EnvSpec
from kubebeast_common.spec.limits import MAX_ID_CHARACTERS
from kubebeast_common.text import printable
from kubebeast_learner.actors.base import Actors
from kubebeast_learner.config import ConfigError, TrainingConfig
from kubebeast_learner.models import Model
from kubebeast_learner.ranks.group import gather, sum_over_ranks
from kubebeast_learner.ranks.place import Place
from kubebeast_learner.training.build import assemble_model, load_user_code
from kubebeast_learner.training.deciding import decide
from kubebeast_learner.training.monitor import Monitor
from kubebeast_runs.files.room import POLL_S, RoomWait

MAX_REASON_CHARS = 1000
"""Maximum length of the reason that is sent to a refused peer: gRPC limits the size of a status."""

logger = logging.getLogger(__name__)

ConfigT = TypeVar("ConfigT", bound=TrainingConfig)


@dataclass(frozen=True, slots=True)
class Met(Generic[ConfigT]):
    """The environment of a training."""

    config: ConfigT
    """The settings of the training, with those that the environment decides."""
    spec: EnvSpec
    model: Model


def wait_for_room(room: RoomWait | None, monitor: Monitor, stop: threading.Event) -> bool:
    """Blocks until the run's volume takes a checkpoint; returns False if a rank was stopped before.

    `room` is the check on the rank that saves; None on the other ranks, and if nothing is saved.
    """
    while True:
        monitor.note_turn()
        is_full = room is not None and not room.look()
        full, stops = sum_over_ranks(torch.tensor([is_full, stop.is_set()]).int()).tolist()
        if stops:
            return False
        if not full:
            return True
        stop.wait(POLL_S)


def meet_environment(
    config: ConfigT, actors: Actors, monitor: Monitor, place: Place, poll_ms: int, stop: threading.Event
) -> Met[ConfigT] | None:
    """Returns the environment, the settings that it decides and its model; None if a rank was stopped before.

    If no model takes an environment that only a peer has named, it is refused, and the wait goes on for another one. If
    a setting or a checkpoint has named it, ConfigError is raised. `poll_ms` is as in wait_for_env_spec.
    """
    load_user_code(config)
    while (spec := wait_for_env_spec(actors, monitor, place.num_ranks, poll_ms, stop)) is not None:
        decided, model, reason = _try_model(config, spec, place, is_named=actors.is_environment_named)
        # A rank may have less memory than the others.
        reasons = [reason for reason in gather(reason) if reason]
        if not reasons and model is not None:
            return Met(decided, spec, model)
        if actors.is_environment_named:
            raise ConfigError(reasons[0])
        _refuse(actors, spec, reasons[0])
    return None


def wait_for_env_spec(
    actors: Actors, monitor: Monitor, num_ranks: int, poll_ms: int, stop: threading.Event
) -> EnvSpec | None:
    """Returns the environment, which all ranks adopt as soon as one knows it; None if a rank was stopped before.

    A rank without env-servers expects the environment of the others, as there may be too few env-servers for all ranks.
    If ranks have met different environments, the first rank's is kept and the others are refused; if they are named,
    ConfigError is raised. `poll_ms` is the longest wait of a rank before it asks the others.
    """
    while True:
        monitor.note_turn()
        spec = actors.wait_env_spec(poll_ms)
        known, stops = sum_over_ranks(torch.tensor([spec is not None, stop.is_set()]).int()).tolist()
        if stops:
            return None
        if spec is not None and known == num_ranks:
            if _is_everywhere(spec, actors):
                return spec
        elif known:
            actors.expect(next(filter(None, gather(spec))))
        actors.check()


def _is_everywhere(spec: EnvSpec, actors: Actors) -> bool:
    """Returns True if all ranks have the same environment; refuses this rank's if it differs from the first rank's."""
    specs = gather(spec)
    differences = {rank: difference for rank, other in enumerate(specs) if (difference := specs[0].difference(other))}
    if not differences:
        return True
    rank, difference = next(iter(differences.items()))
    reason = f"the env-servers of rank {rank} have another environment: {difference}"
    if actors.is_environment_named:
        raise ConfigError(reason)
    if specs[0].difference(spec):
        _refuse(actors, spec, reason)
    return False


def _try_model(config: ConfigT, spec: EnvSpec, place: Place, *, is_named: bool) -> tuple[ConfigT, Model | None, str]:
    """Returns the settings for the environment with its model, or with None and the reason."""
    try:
        decided = decide(config, spec)
        return decided, assemble_model(decided, spec, place, is_named=is_named), ""
    except ConfigError as error:
        return config, None, str(error)


def _refuse(actors: Actors, spec: EnvSpec, reason: str) -> None:
    reason = printable(reason, MAX_REASON_CHARS)
    logger.error(
        "refusing the env-servers of %s and waiting for others: %s", printable(spec.env_id, MAX_ID_CHARACTERS), reason
    )
    actors.refuse(reason)
