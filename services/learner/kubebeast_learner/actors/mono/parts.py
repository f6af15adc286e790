"""Parts of the environments that the actor processes play, and the memory of each part."""

from collections.abc import Sequence
from typing import NamedTuple

from kubebeast_learner.actors.base import spread
from kubebeast_learner.actors.lag import LagSchedule
from kubebeast_learner.config import ConfigError, MonoConfig
from kubebeast_learner.machine.cores import num_cores


class Part(NamedTuple):
    """Groups of environments of one process. The environments of a group fill the columns of one block together."""

    groups: Sequence[int]
    """Indices among the groups of all processes."""
    group_size: int
    blocks_per_group: int

    @property
    def num_blocks(self) -> int:
        return len(self.groups) * self.blocks_per_group


def parts_of(config: MonoConfig, num_agents: int, schedule: LagSchedule | None) -> list[Part]:
    """Returns the part of each process: groups of the schedule, or one group of its share of num_actors."""
    num_envs = require_whole_environments(config, num_agents)
    if schedule is None:
        sizes = [num_agents * share for share in spread(num_envs, min(num_envs, num_processes(config)))]
        return [Part([index], size, num_blocks(config)) for index, size in enumerate(sizes)]
    parts, first = [], 0
    for count in spread(schedule.num_groups, min(schedule.num_groups, num_processes(config))):
        parts.append(Part(range(first, first + count), schedule.group_size, schedule.unrolls_per_group))
        first += count
    return parts


def make_schedule(config: MonoConfig, num_agents: int, lag: int) -> LagSchedule:
    """Returns the order of unrolls with a fixed lag. Raises ConfigError if batches would split an environment."""
    require_whole_environments(config, num_agents)
    batch_size = config.rollout.batch_size
    try:
        return LagSchedule(config.actors.num_actors, config.replay.num_fresh(batch_size), lag, num_agents)
    except ValueError as error:
        raise ConfigError(f"batch_size = {batch_size}: with lag = {lag}, {error}") from error


def num_processes(config: MonoConfig) -> int:
    """Returns num_actor_processes, or if it is 0 one per core of this machine, at most num_actors."""
    return config.actors.num_actor_processes or min(num_cores(), config.actors.num_actors)


def require_whole_environments(config: MonoConfig, num_agents: int) -> int:
    """Returns the number of environments in num_actors. Raises ConfigError if there is a rest."""
    num_envs, rest = divmod(config.actors.num_actors, num_agents)
    if rest:
        raise ConfigError(
            f"num_actors = {config.actors.num_actors}: counts agents, so it must be a multiple of the {num_agents} of "
            f"{config.actors.env}"
        )
    return num_envs


def num_busy_processes(config: MonoConfig) -> int:
    """Returns the number of processes that have a core each."""
    return num_processes(config) if config.rollout.keeps_cores(config.actors.lag) else 0


def waits_for_updates(config: MonoConfig) -> bool:
    """Returns True if all environments wait during updates, as the next batch is played with the new weights."""
    return config.rollout.waits(config.actors.lag)


def num_blocks(config: MonoConfig) -> int:
    """Returns the blocks per process: enough for the fresh part of a batch if environments wait for updates; else
    enough for num_buffers unrolls, and for that part while every actor fills one.
    """
    num_actors = config.actors.num_actors
    for_batch = -(-config.replay.num_fresh(config.rollout.batch_size) // num_actors)
    if waits_for_updates(config):
        return for_batch
    wanted = config.actors.num_buffers or 2 * num_actors
    return max(-(-wanted // num_actors), 1 + for_batch, 2)
