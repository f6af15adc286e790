"""An env-server with environments that replay a recording, which isolates the cost of streaming."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import frames
from benchmarks.cell import Cell
from kubebeast_common.spec.leaves import Leaf
from kubebeast_envserver.config import TransportName
from kubebeast_envserver.rows.rows import Array, StepRows
from kubebeast_envserver.stream.session import Identity, Session
from kubebeast_envserver.stream.transport import open_stream


def observation_leaves(cell: Cell) -> list[Leaf]:
    return [Leaf("", "uint8", (84, 84), frame_stack=cell.frame_stack)]


def action_leaves() -> list[Leaf]:
    return [Leaf("", "int64", (), num_categories=frames.NUM_ACTIONS)]


class RecordedEnv:
    """A HostedEnv without rewards and with precomputed rows, so that a step costs nothing."""

    def __init__(self, cell: Cell, recording: Path) -> None:
        self.num_envs, self.num_agents = cell.num_envs, 1
        self.takes_turns = False
        self.spec_observation = observation_leaves(cell)
        self.spec_action = action_leaves()
        recorded = np.ascontiguousarray(frames.load(recording)[:, : cell.num_envs])
        none, all_envs = np.zeros(cell.num_envs, np.bool_), np.ones(cell.num_envs, np.bool_)
        self._first = _rows(recorded[0], none, is_first=all_envs)
        self._rows = [_rows(each, none, is_first=none) for each in recorded]
        self._step = 0
        self._episode_steps = cell.episode_steps
        self._places = np.arange(cell.num_envs) * cell.episode_steps // cell.num_envs
        """int64 [B]: steps of the running episode of each environment, which end at different times."""

    def reset(self) -> StepRows:
        return self._first

    def step(self, actions: list[Array]) -> StepRows:
        self._step += 1
        rows = self._rows[self._step % len(self._rows)]
        return rows if self._episode_steps == 0 else self._with_episodes(rows)

    def set_options(self, options: Mapping[int, Mapping[str, Any]]) -> None:
        """Does nothing: with any options, the recording is the same."""

    def _with_episodes(self, rows: StepRows) -> StepRows:
        self._places += 1
        over, first = self._places == self._episode_steps, self._places > self._episode_steps
        self._places[first] = 0
        episodes = [(int(env), 0.0, self._episode_steps) for env in np.flatnonzero(over)]
        return replace(rows, terminated=over, is_first=first, episodes=episodes)

    def close(self) -> None:
        pass


def _rows(newest: Array, none: Array, is_first: Array) -> StepRows:
    """Returns rows with the newest frames [B, 84, 84]; `none` is bool [B], all False."""
    return StepRows(
        observation=[newest],
        rewards=np.zeros(len(newest), np.float32),
        terminated=none,
        truncated=none,
        is_first=is_first,
        episodes=[],
    )


def run(cell: Cell, streams: range, address: str, recording: Path, transport: TransportName = "auto") -> None:
    """Streams one environment vector, like one env-server process, until the stream ends, which is an error."""
    (stream,) = streams
    identity = Identity(env_server_id=f"recorded-{stream}", instance_id=f"recorded-{stream}", env_id="Recorded-v0")
    env = RecordedEnv(cell, recording)
    with open_stream(address, transport=transport) as connection:
        Session(connection, env, identity, lz4=cell.codec == "lz4", welcome_timeout_s=60.0).run()
