"""A gymnasium vector environment of a fleet: all environments step together."""

from typing import Any, Unpack

import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from kubebeast_common.spec.spaces import Batch
from kubebeast_fleet.options import FleetOptions
from kubebeast_fleet.playing import Playing
from kubebeast_native import Episode, StreamInfo


class FleetVectorEnv(VectorEnv[Batch, Any, NDArray[Any]]):
    """A vector environment of num_envs environments of env-servers that dial in, with AutoresetMode.NEXT_STEP.

    A stream fills as many places as it has environments, all or none; a stream that does not fit waits in reserve. If
    an environment is lost because it failed or its env-server left, its place shows one more row: the last observation,
    reward 0, truncated and info["lost"] set. The next row is the first of the environment that takes the place.

    The spaces are those of the first env-server, flattened: Box, Discrete, MultiDiscrete, MultiBinary, or a Dict of
    these by the paths of leaves. Bounded actions are in [-1, 1]. Stacked frames are the first axis of their leaf.

    Not thread-safe, except `stats` and `streams`.
    """

    _playing: Playing | None = None  # None if the constructor failed

    def __init__(self, address: str, num_envs: int, *, copy: bool = True, **options: Unpack[FleetOptions]) -> None:
        """Listens, and blocks until the first env-server sends its Hello.

        Args:
            address: "host:port" or "unix:/path". Port 0 picks a free port.
            num_envs: Number of environments.
            copy: If False, all calls return the same observation arrays.
            **options: See FleetOptions.

        Raises:
            ValueError: An argument is invalid.
            OSError: The address cannot be bound.
            TlsError: A certificate or key is unusable.
            TokenFileError: The token file is unusable.
            FleetTimeoutError: No env-server dialed within fleet_timeout_s.
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
        """Returns the current rows. The first call blocks until every place has the first row of an episode.

        Environments of a fleet reset themselves at the end of an episode, and the --seed of their env-servers seeds
        them. Later calls return the current rows again and do not interrupt episodes.

        Args:
            seed: Seeds np_random, not the environments.
            options: Ignored.

        Returns:
            Observations, and info with bool [N] "lost".

        Raises:
            FleetTimeoutError: No row arrived within fleet_timeout_s.
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
        """Acts in all places and blocks until each has a new row, which for an empty place needs a new environment.

        If the last row of a place ended an episode, its action is ignored.

        Returns:
            Observations, rewards float32 [N], terminated, truncated, and info with bool [N] "lost".

        Raises:
            ResetNeeded: `reset` was not called before.
            ValueError: The actions do not fit the action space. No environment has acted.
            FleetTimeoutError: No row arrived within fleet_timeout_s.
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
        """Address that the fleet listens on, with the actual port."""
        return self._here().address

    @property
    def http_port(self) -> int | None:
        """Actual port of http_address; None if it is not set."""
        return self._here().http_port

    def stats(self) -> dict[str, int]:
        """Returns ActorPool.stats and the returned rows by kind: rows_first, rows_step, rows_lost. Thread-safe."""
        return self._here().stats()

    def streams(self) -> list[StreamInfo]:
        """Returns the active streams. Thread-safe."""
        return self._here().streams()

    def take_episodes(self) -> list[Episode]:
        """Returns episodes ended since the last call, as env-servers count them: whole games, unclipped rewards."""
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
