"""What an actor process does: steps its environments, acts with the newest weights, fills blocks."""

import contextlib
import os
import signal
import sys
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from kubebeast_envserver.envs import EnvironmentFailure, HostedEnv, Preset, make_vector_env
from kubebeast_learner.allocator import keep_freed_memory
from kubebeast_learner.inference import sample_actions
from kubebeast_learner.models import ModelInputs
from kubebeast_learner.mono.blocks import BlockLayout
from kubebeast_learner.mono.weights import SharedWeights
from kubebeast_learner.profiling import ProfilerFollower, Window, span
from kubebeast_learner.rollout import Rollout

LOG_NAME = "actors.log"
"""File in the folder of the run that takes what actor processes print."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ActorTask:
    """All that an actor process is given at its start."""

    env: str
    preset: Preset
    num_envs: int
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
    episode_return: float
    length: int


class FilledBlock(NamedTuple):
    """From an actor process: the block with this number is the learner's until it returns the number."""

    number: int
    episodes: list[Episode]
    """The whole games that ended meanwhile."""


class ActorFailure(NamedTuple):
    """The last message of an actor process whose environment or model failed."""

    reason: str


def run_actor(task: ActorTask, learner: Connection) -> None:
    """Fills the blocks whose numbers arrive from `learner`, in turn, until None or the end of the learner."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the learner, which then stops its actors
    _redirect_output(task.folder / LOG_NAME)
    torch.set_num_threads(1)
    keep_freed_memory()
    try:
        env = make_vector_env(task.env, task.num_envs, task.preset, seed=task.seed)
        with contextlib.closing(env), torch.inference_mode():
            _serve(Actor(task, env), task.layout.blocks_in(task.memory, task.num_envs), learner)
    except (BrokenPipeError, ConnectionResetError, EOFError):
        return  # the learner is gone
    except Exception as error:
        with contextlib.suppress(OSError):
            learner.send(ActorFailure(str(error) if isinstance(error, EnvironmentFailure) else repr(error)))
        raise


class Actor:
    """The environments of one process, and what is carried from row to row. `fill` runs in inference mode."""

    def __init__(self, task: ActorTask, env: HostedEnv) -> None:
        self._env = env
        self._weights = task.weights
        self._action_dtype = env.spec_action[0].dtype
        self._generator = torch.Generator().manual_seed(task.seed)
        self._rows = env.reset()
        self._last_action = torch.zeros(env.num_envs, dtype=torch.int64)
        model, _ = self._weights.current()
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
            with span("env_step"):
                self._rows = self._env.step([self._last_action.numpy().astype(self._action_dtype)])
            self._write_row(block, t + 1)
            if self._rows.interrupted.any():  # the action had no consequence
                block.valid[t] &= torch.from_numpy(~self._rows.interrupted)
            episodes += [Episode(episode_return, length) for _, episode_return, length in self._rows.episodes]
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
        self._last_action = sample_actions(policy_logits, self._generator)
        block.action[t] = self._last_action
        block.policy_logits[t] = policy_logits
        block.policy_version[t] = version
        block.valid[t] = ~(block.terminated[t] | block.truncated[t])

    def _write_row(self, block: Rollout, t: int) -> None:
        rows = self._rows
        for kept, leaf in zip(block.observation, rows.observation, strict=True):
            kept[t].numpy()[...] = leaf
        for column, values in (
            (block.rewards, rows.rewards),
            (block.terminated, rows.terminated),
            (block.truncated, rows.truncated),
            (block.is_first, rows.is_first),
        ):
            column[t].numpy()[...] = values
        block.last_action[t] = self._last_action.masked_fill(block.is_first[t], 0)


def _serve(actor: Actor, blocks: list[Rollout], learner: Connection) -> None:
    while (number := learner.recv()) is not None:
        learner.send(FilledBlock(number, actor.fill(blocks[number])))
    actor.close()


def _redirect_output(path: Path) -> None:
    """Standard output and error belong to the learner's live table."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    sys.stdout.flush()
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    os.close(descriptor)
