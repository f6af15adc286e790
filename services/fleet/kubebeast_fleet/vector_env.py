"""The fleet as a gymnasium vector environment: all environments step together."""

from typing import Any, Unpack

import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from kubebeast_fleet.options import FleetOptions
from kubebeast_fleet.playing import Playing
from kubebeast_fleet.spaces import Batch
from kubebeast_native import Episode, StreamInfo


class FleetVectorEnv(VectorEnv[Batch, Any, NDArray[Any]]):
    """num_envs environments of the env-servers that dial in, with AutoresetMode.NEXT_STEP. For one thread.

    A stream fills as many places as it has environments, together or not at all; what does not fit waits in reserve.
    When an environment is lost (its env-server went, or it failed), its place shows one more row, with the last
    observation, reward 0, truncated and info["lost"] set; the next row is the first of whoever takes the place.

    Spaces are those of the first env-server, flat: Box, Discrete, MultiDiscrete, MultiBinary, or a Dict of these by the
    leaves' paths. Bounded actions are in [-1, 1]. A stack of frames is the first axis of its leaf.
    """

    _playing: Playing | None = None  # of an environment whose constructor failed

    def __init__(self, address: str, num_envs: int, *, copy: bool = True, **options: Unpack[FleetOptions]) -> None:
        """Listens and blocks until the first env-server says Hello.

        address: "host:port", where port 0 picks one, or "unix:/path". copy: False returns the same arrays of
        observations each time.

        Raises ValueError for a bad argument, OSError for an address, TlsError and TokenFileError for a file, and
        FleetTimeoutError after fleet_timeout_s without an env-server.
        """
        self._playing = Playing(address, num_envs, batch_size=num_envs, split_streams=False, **options)
        self.num_envs = num_envs
        self.metadata = {"autoreset_mode": AutoresetMode.NEXT_STEP}
        self.single_observation_space = self._playing.observation_space
        self.single_action_space = self._playing.action_space
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._copy = copy
        self._started = False
        self._everywhere = np.arange(num_envs)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Batch, dict[str, Any]]:
        """Blocks until every place has a row; at the first call that of a new episode. Raises FleetTimeoutError.

        Environments of a fleet reset themselves at the end of an episode and are seeded by their env-servers' --seed: a
        later call returns the rows that are there, and the episodes under way go on. options: not used.
        """
        super().reset(seed=seed)
        playing = self._here()
        if not self._started:
            playing.exchange.receive(self.num_envs)
            self._started = True
        return self._observations(), {"lost": playing.exchange.lost.copy()}

    def step(
        self, actions: Any
    ) -> tuple[Batch, NDArray[np.float32], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        """Acts in every place, except where the last row ended an episode, and blocks until every place has a new row.

        Returns observations, rewards float32 [N], terminated, truncated, and info with bool [N] "lost". Where a place
        is empty, waits for an environment; FleetTimeoutError after fleet_timeout_s without a row. ValueError for
        actions that are not of the space, before any is taken.
        """
        playing = self._here()
        if not self._started:
            raise ResetNeeded("reset comes before the first step")
        playing.exchange.answer(playing.action_leaves(actions, self.num_envs), self._everywhere)
        playing.exchange.receive(self.num_envs)
        rows = playing.exchange
        ends = rows.terminated.copy(), rows.truncated.copy()
        return self._observations(), rows.rewards.copy(), *ends, {"lost": rows.lost.copy()}

    @property
    def address(self) -> str:
        """Where env-servers are listened for, with the port that was picked."""
        return self._here().address

    @property
    def http_port(self) -> int | None:
        """The port of http_address; None without one."""
        return self._here().http_port

    def stats(self) -> dict[str, int]:
        """The books: ActorPool.stats, and rows_first, rows_step and rows_lost that were handed out. From any thread."""
        return self._here().stats()

    def streams(self) -> list[StreamInfo]:
        """The streams that play. From any thread."""
        return self._here().streams()

    def take_episodes(self) -> list[Episode]:
        """Episodes that ended since the last call, as env-servers count them: whole games, unclipped rewards."""
        return self._here().take_episodes()

    def close_extras(self, **kwargs: Any) -> None:
        if self._playing is not None:
            self._playing.close()

    def _observations(self) -> Batch:
        playing = self._here()
        arrays = playing.exchange.observation
        return playing.observation([array.copy() for array in arrays] if self._copy else arrays)

    def _here(self) -> Playing:
        assert self._playing is not None, "the constructor has returned"
        return self._playing
