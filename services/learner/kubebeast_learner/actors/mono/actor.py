"""What an actor process does: steps its environments, acts with the newest weights, fills blocks."""

import contextlib
import logging
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from kubebeast_common.user_code import describe
from kubebeast_envserver.envs.factory import EnvironmentFailure, HostedEnv, make_vector_env
from kubebeast_envserver.faults.watched_env import watched
from kubebeast_envserver.rows.stream_status import StreamStatus
from kubebeast_learner.actors.mono.blocks import BlockLayout, write_row
from kubebeast_learner.actors.mono.own_process import begin
from kubebeast_learner.actors.mono.shared_weights import SharedWeights
from kubebeast_learner.algorithm.rollout import Rollout
from kubebeast_learner.config import MonoConfig
from kubebeast_learner.machine import priority
from kubebeast_learner.machine.allocator import keep_freed_memory
from kubebeast_learner.models import ModelInputs
from kubebeast_learner.profiling.trace import ProfilerFollower, Window, span


@dataclass(frozen=True, kw_only=True, slots=True)
class ActorTask:
    """All that an actor process is given at its start."""

    config: MonoConfig
    num_envs: int
    status: StreamStatus
    """Shared: the learner reads how long the environments compute."""
    seed: int
    """Of the environments and of the action sampling."""
    layout: BlockLayout
    memory: Tensor
    """uint8, shared: the blocks of this process."""
    weights: SharedWeights
    folder: Path
    """Of the run."""
    name: str
    profile_window: Window | None
    """Set while the learner records for `--profile`."""


class Episode(NamedTuple):
    env_id: str
    episode_return: float
    length: int


class FilledBlock(NamedTuple):
    """From an actor process: the block with this number is the learner's until it returns the number."""

    number: int
    episodes: list[Episode]
    """The whole games that ended meanwhile."""


class LogLine(NamedTuple):
    """From an actor process: what its environments have to say to people."""

    level: int
    message: str


class ActorFailure(NamedTuple):
    """The last message of an actor process whose environment or model failed."""

    reason: str
    is_final: bool = False
    """Another process would fail in the same way."""


def run_actor(task: ActorTask, learner: Connection) -> None:
    """Fills the blocks whose numbers arrive from `learner`, in turn, until None or the end of the learner."""
    begin(task.folder, task.config.run)
    logging.getLogger("kubebeast_envserver").addHandler(_LearnersLog(learner))
    torch.set_num_threads(1)
    priority.give_way(priority.ENVIRONMENTS)
    keep_freed_memory()
    actor = None
    actors = task.config.actors
    try:
        with watched(task.status):
            env = make_vector_env(actors.env, task.num_envs, seed=task.seed, status=task.status, **actors.making)
        with contextlib.closing(env), torch.inference_mode():
            actor = Actor(task, env)
            _serve(actor, task.layout.blocks_in(task.memory, task.num_envs), learner)
    except (BrokenPipeError, ConnectionResetError, EOFError):
        return  # the learner is gone
    except Exception as error:
        failed = isinstance(error, EnvironmentFailure)
        never_worked = failed and (actor is None or not actor.has_played)
        with contextlib.suppress(OSError):
            learner.send(ActorFailure(str(error) if failed else describe(error), is_final=never_worked))
        raise


class Actor:
    """The environments of one process, and what is carried from row to row. `fill` runs in inference mode."""

    def __init__(self, task: ActorTask, env: HostedEnv) -> None:
        self.has_played = False
        """Whether an action ever had a consequence."""
        self._env_id = task.config.actors.env
        self._env = env
        self._weights = task.weights
        self._generator = torch.Generator().manual_seed(task.seed)
        self._status = task.status
        with watched(self._status):
            self._rows = env.reset()
        model, _ = self._weights.current()
        self._distribution = model.distribution
        self._last_action = self._distribution.none(env.num_envs)
        self._core_state = model.initial_state(env.num_envs)
        self._profiler = ProfilerFollower(task.profile_window, task.folder, task.name)

    def fill(self, block: Rollout) -> list[Episode]:
        """Plays unroll_length steps; row 0 is the last row of the block before. Returns the games that ended."""
        for kept, state in zip(block.core_state, self._core_state, strict=True):
            kept.copy_(state)
        self._write_row(block, 0)
        episodes: list[Episode] = []
        for t in range(block.unroll_length):
            self._profiler.step()
            with span("inference"):
                self._act(block, t)
            with span("env_step"), watched(self._status):
                self._rows = self._env.step(self._distribution.to_leaves(self._last_action))
            self._write_row(block, t + 1)
            if self._rows.interrupted.any():  # the action had no consequence
                block.valid[t] &= torch.from_numpy(~self._rows.interrupted)
            self.has_played = self.has_played or bool(block.valid[t].any())
            episodes += [
                Episode(self._env_id, episode_return, length) for _, episode_return, length in self._rows.episodes
            ]
        return episodes

    def close(self) -> None:
        """Writes a trace that is being recorded, if the learner has ended its own."""
        self._profiler.step()

    def _act(self, block: Rollout, t: int) -> None:
        row = slice(t, t + 1)
        inputs = ModelInputs(
            observation=tuple(leaf[row] for leaf in block.observation),
            reward=block.rewards[row],
            last_action=block.last_action[row],
            is_first=block.is_first[row],
        )
        model, version = self._weights.current()
        output, self._core_state = model(inputs, self._core_state)
        policy_logits = output.policy_logits[0]
        self._last_action = self._distribution.sample(policy_logits, self._generator)
        block.action[t] = self._last_action
        block.policy_logits[t] = policy_logits
        block.policy_version[t] = version
        block.valid[t] = ~(block.terminated[t] | block.truncated[t])

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


def _serve(actor: Actor, blocks: list[Rollout], learner: Connection) -> None:
    while (number := learner.recv()) is not None:
        learner.send(FilledBlock(number, actor.fill(blocks[number])))
    actor.close()


class _LearnersLog(logging.Handler):
    """Sends warnings and worse to the learner."""

    def __init__(self, learner: Connection) -> None:
        super().__init__(logging.WARNING)
        self._learner = learner

    def emit(self, record: logging.LogRecord) -> None:
        with contextlib.suppress(OSError):  # a learner that is gone is noticed where blocks are exchanged
            self._learner.send(LogLine(record.levelno, record.getMessage()))
