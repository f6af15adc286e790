"""An asynchronous vector environment of a fleet, with the semantics of EnvPool: no wait for the slowest environment."""

from typing import Any, Self, Unpack

import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space
from numpy.typing import ArrayLike, NDArray

from kubebeast_common.spec.spaces import Batch
from kubebeast_fleet.options import FleetOptions
from kubebeast_fleet.playing import Playing
from kubebeast_native import Episode, StreamInfo


class AsyncFleetVectorEnv:
    """A vector environment with `recv` for the rows that are ready first and `send` for actions of received rows.

        while True:
            observations, rewards, terminated, truncated, info = envs.recv()
            envs.send(policy(observations), info["env_id"])

    Environments, spaces and lost rows are as in FleetVectorEnv. The environments of a stream step together, as soon as
    each has an action. Not thread-safe, except `stats` and `streams`.
    """

    def __init__(self, address: str, num_envs: int, batch_size: int, **options: Unpack[FleetOptions]) -> None:
        """Listens, and blocks until the first env-server sends its Hello.

        Args:
            address: As in FleetVectorEnv.
            num_envs: Number of environments.
            batch_size: Default number of rows of `recv`, at most num_envs.
            **options: See FleetOptions.

        Raises the errors of FleetVectorEnv.
        """
        self._playing = Playing(address, num_envs, batch_size=batch_size, split_streams=True, **options)
        self.num_envs, self.batch_size = num_envs, batch_size
        self.metadata = {"autoreset_mode": AutoresetMode.NEXT_STEP}
        self.single_observation_space = self._playing.observation_space
        self.single_action_space = self._playing.action_space
        self.observation_space = batch_space(self.single_observation_space, batch_size)
        self.action_space = batch_space(self.single_action_space, batch_size)

    def recv(
        self, batch_size: int | None = None
    ) -> tuple[Batch, NDArray[np.float32], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        """Blocks until batch_size rows are ready, and returns the oldest.

        Args:
            batch_size: Number of rows M; default: the constructor's.

        Returns:
            Observations, rewards float32 [M], terminated, truncated, and info with int64 [M] "env_id", the indices of
                the environments; bool [M] "is_first" for the first row of an episode; and bool [M] "lost".

        Raises:
            ValueError: Fewer than batch_size rows can arrive, because environments with a received and unanswered row
                wait for an action.
            FleetTimeoutError: No row arrived within fleet_timeout_s.
        """
        rows = self._playing.exchange
        ids = rows.receive(self.batch_size if batch_size is None else batch_size)
        observation = self._playing.observation([array[ids] for array in rows.observation])
        info = {"env_id": ids, "is_first": rows.is_first[ids], "lost": rows.lost[ids]}
        return observation, rows.rewards[ids], rows.terminated[ids], rows.truncated[ids], info

    def send(self, actions: Any, env_id: ArrayLike) -> None:
        """Acts in environments with a received and unanswered row. Never blocks.

        Args:
            actions: Batch of M actions.
            env_id: Indices of the environments, int [M].

        Raises:
            ValueError: The actions do not fit the action space, or a row was not received or is answered already.
        """
        ids = np.asarray(env_id)
        self._playing.exchange.answer(self._playing.action_leaves(actions, ids.size), ids)

    @property
    def address(self) -> str:
        """Address that the fleet listens on, with the actual port."""
        return self._playing.address

    @property
    def http_port(self) -> int | None:
        """Actual port of http_address; None if it is not set."""
        return self._playing.http_port

    def stats(self) -> dict[str, int]:
        """Returns the same values as FleetVectorEnv.stats. Thread-safe."""
        return self._playing.stats()

    def streams(self) -> list[StreamInfo]:
        """Returns the active streams. Thread-safe."""
        return self._playing.streams()

    def take_episodes(self) -> list[Episode]:
        """Returns the same episodes as FleetVectorEnv.take_episodes."""
        return self._playing.take_episodes()

    def close(self) -> None:
        """Ends all streams. Idempotent."""
        self._playing.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
