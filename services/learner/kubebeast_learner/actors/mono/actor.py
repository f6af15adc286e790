"""Actor processes, which step environments, act with the newest weights and fill blocks."""

import contextlib
import logging
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from kubebeast_common.process.family import kill_own_family
from kubebeast_common.process.leaving import leave
from kubebeast_common.user_code import describe
from kubebeast_envserver.envs.factory import EnvironmentFailure, HostedEnv, make_vector_env
from kubebeast_envserver.faults.watched_env import WatchedEnv, watched
from kubebeast_envserver.rows import advice
from kubebeast_envserver.rows.episodes import InfoNumbers
from kubebeast_envserver.rows.rows import Array
from kubebeast_envserver.rows.running_statistics import Statistics, statistics_of
from kubebeast_envserver.rows.stream_status import StreamStatus
from kubebeast_learner.actors.mono.blocks import BlockLayout, write_row
from kubebeast_learner.actors.mono.isolated_env import isolated
from kubebeast_learner.actors.mono.level_queue import LevelQueue
from kubebeast_learner.actors.mono.own_process import begin
from kubebeast_learner.actors.mono.shared_weights import SharedWeights
from kubebeast_learner.algorithm.rollout import Rollout
from kubebeast_learner.config import MonoConfig
from kubebeast_learner.machine import priority
from kubebeast_learner.machine.allocator import keep_freed_memory
from kubebeast_learner.models import ModelInputs
from kubebeast_learner.profiling.trace import ProfilerFollower, Window, span
from kubebeast_learner.run.task_returns import Episode


class Seeds(NamedTuple):
    """Seeds of one group."""

    envs: int
    """That of the first environment; the next ones count up."""
    sampling: int


@dataclass(frozen=True, kw_only=True, slots=True)
class ActorTask:
    """The inputs of an actor process at its start."""

    config: MonoConfig
    num_envs: int
    """Environments of each group, which fill the columns of a block."""
    status: StreamStatus
    """Shared memory: the learner reads from it for how long the environments compute."""
    seeds: tuple[Seeds, ...]
    """Those of each group."""
    layout: BlockLayout
    memory: Tensor
    """uint8, shared: the blocks of this process."""
    weights: SharedWeights
    folder: Path
    """Folder of the run."""
    name: str
    profile_window: Window | None
    """Event that is set while the learner records for `--profile`."""
    is_first: bool = True
    """True for the first of the actor processes."""
    statistics: tuple[tuple[Statistics, ...], ...] = ()
    """For each group, statistics of its environments' wrappers to continue from; empty if there are none."""
    levels: tuple[str, ...] = ()
    """Levels of LevelSupply.begin, for the only group; empty without a curriculum."""


class BlockOrder(NamedTuple):
    """A message of the learner: the block that is to be filled."""

    number: int
    """Blocks are numbered by group; each group has the same number of them."""
    version: int | None
    """Version of the weights that act; None: at every step the newest."""
    levels: tuple[str, ...] = ()
    """Further levels of episodes."""


class FilledBlock(NamedTuple):
    """A message of an actor process: the block with this number is the learner's until it is ordered again."""

    number: int
    episodes: list[Episode]
    """Whole games that ended meanwhile."""
    statistics: tuple[Statistics, ...] = ()
    """Statistics of the wrappers of all environments of the group together."""
    level_counts: tuple[int, int] = (0, 0)
    """LevelQueue.take_counts of the block."""


class LogLine(NamedTuple):
    """A message of an actor process: a log line of its environments."""

    level: int
    message: str


class ActorFailure(NamedTuple):
    """The last message of an actor process after a failure of its environment or model."""

    reason: str
    is_final: bool = False
    """True if another process would fail in the same way."""


def run_actor(task: ActorTask, learner: Connection) -> None:
    """Runs the process: fills the blocks that `learner` orders, in turn, until None or the learner's end."""
    priority.give_way(priority.ENVIRONMENTS)
    begin(task.folder, task.config.run)
    _run(task, learner)
    leave(0, last=kill_own_family)


def _run(task: ActorTask, learner: Connection) -> None:
    logging.getLogger("kubebeast_envserver").addHandler(_LearnersLog(learner))
    advice.logger.disabled = not task.is_first  # all processes would log the same
    torch.set_num_threads(1)
    keep_freed_memory()
    actors: list[Actor] = []
    try:
        with contextlib.ExitStack() as stack:
            for group in range(len(task.seeds)):
                actors.append(Actor(task, stack.enter_context(contextlib.closing(_make_env(task, group))), group))
            _serve(actors, task.layout.blocks_in(task.memory, task.num_envs), learner)
    except (BrokenPipeError, ConnectionResetError, EOFError):
        return  # the learner is gone
    except Exception as error:
        failed = isinstance(error, EnvironmentFailure)
        never_worked = failed and not any(actor.has_played for actor in actors)
        with contextlib.suppress(OSError):
            learner.send(ActorFailure(str(error) if failed else describe(error), is_final=never_worked))
        raise


def _make_env(task: ActorTask, group: int) -> HostedEnv:
    actors = task.config.actors
    statistics = task.statistics[group] if task.statistics else ()
    with watched(task.status):
        make = partial(make_vector_env, actors.env, task.num_envs, seed=task.seeds[group].envs, status=task.status)
        return isolated(partial(make, statistics=statistics, **actors.making))


class Actor:
    """The environments of one group, and the state from row to row."""

    def __init__(self, task: ActorTask, env: HostedEnv, group: int = 0) -> None:
        self.has_played = False
        """True after an action has had a consequence."""
        self._env_id = task.config.actors.env
        self._env = WatchedEnv(env, task.status)
        self.levels = LevelQueue(self._env, task.levels, task.status)
        """Levels of the episodes; none without a curriculum."""
        self._info = InfoNumbers(task.config.run.log_info)
        self._weights = task.weights
        self._generator = torch.Generator().manual_seed(task.seeds[group].sampling)
        self._rows = self._env.reset()
        model, _ = self._weights.current()
        self._distribution = model.distribution
        self._last_action = self._distribution.none(env.num_envs)
        self._core_state = model.initial_state(env.num_envs)
        self._profiler = ProfilerFollower(task.profile_window if group == 0 else None, task.folder, task.name)

    def fill(self, block: Rollout, version: int | None = None) -> list[Episode]:
        """Plays unroll_length steps; row 0 is the last row of the block before. Returns the games that ended.

        version: see BlockOrder.
        """
        for kept, state in zip(block.core_state, self._core_state, strict=True):
            kept.copy_(state)
        self._write_row(block, 0)
        episodes: list[Episode] = []
        for t in range(block.unroll_length):
            self._profiler.step()
            with span("inference"), torch.inference_mode():
                actions = self._act(block, t, version)
            with span("env_step"):
                self._rows = self._env.step(actions)
            self._write_row(block, t + 1)
            if self._rows.interrupted.any():  # the action had no consequence
                block.valid[t] &= torch.from_numpy(~self._rows.interrupted)
            self.has_played = self.has_played or bool(block.valid[t].any())
            episodes += [
                Episode(self._env_id, episode_return, length, self._info.read(self._rows, env), self.levels.of(env))
                for env, episode_return, length in self._rows.episodes
            ]
            self.levels.note(self._rows)
        return episodes

    def statistics(self) -> tuple[Statistics, ...]:
        return statistics_of(self._env)

    def close(self) -> None:
        """Writes a trace that is being recorded, if the learner has ended its own."""
        self._profiler.step()

    def _act(self, block: Rollout, t: int, version: int | None) -> list[Array]:
        """Runs the model on row t. Returns the actions, one array [B, *shape] per leaf."""
        row = slice(t, t + 1)
        inputs = ModelInputs(
            observation=tuple(leaf[row] for leaf in block.observation),
            reward=block.rewards[row],
            last_action=block.last_action[row],
            is_first=block.is_first[row],
        )
        model, version = self._weights.current() if version is None else (self._weights.at(version), version)
        output, core_state = model(inputs, self._core_state)
        policy_logits = output.policy_logits[0]
        drawn = self._distribution.sample(policy_logits, self._generator)
        self._last_action = self._distribution.squashed(drawn)
        # An observation too large for the weights spoils its own row, not all rows to the episode's end.
        self._core_state = tuple(state.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0) for state in core_state)
        block.action[t] = drawn
        block.policy_logits[t] = policy_logits
        block.policy_version[t] = version
        block.valid[t] = ~(block.terminated[t] | block.truncated[t])
        return self._distribution.to_leaves(self._last_action)

    def _write_row(self, block: Rollout, t: int) -> None:
        rows = self._rows
        for kept, leaf in zip(block.observation, rows.observation, strict=True):
            write_row(kept[t].numpy(), leaf)
        for column, values in (
            (block.rewards, rows.rewards),
            (block.terminated, rows.terminated),
            (block.truncated, rows.truncated),
            (block.is_first, rows.is_first),
        ):
            column[t].numpy()[...] = values
        block.last_action[t] = self._last_action
        block.last_action[t][block.is_first[t]] = 0


def _serve(actors: list[Actor], blocks: list[Rollout], learner: Connection) -> None:
    blocks_per_group = len(blocks) // len(actors)
    order: BlockOrder | None
    while (order := learner.recv()) is not None:
        actor = actors[order.number // blocks_per_group]
        actor.levels.add(order.levels)
        episodes = actor.fill(blocks[order.number], order.version)
        learner.send(FilledBlock(order.number, episodes, actor.statistics(), actor.levels.take_counts()))
    for actor in actors:
        actor.close()


class _LearnersLog(logging.Handler):
    """A handler that sends warnings and errors to the learner."""

    def __init__(self, learner: Connection) -> None:
        super().__init__(logging.WARNING)
        self._learner = learner

    def emit(self, record: logging.LogRecord) -> None:
        with contextlib.suppress(OSError):  # the exchange of blocks detects that the learner is gone
            self._learner.send(LogLine(record.levelno, record.getMessage()))
