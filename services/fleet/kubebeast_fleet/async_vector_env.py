"""The fleet as an asynchronous vector environment, with EnvPool's semantics: nobody waits for the slowest."""

from typing import Any, Self, Unpack

import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space
from numpy.typing import ArrayLike, NDArray

from kubebeast_fleet.options import FleetOptions
from kubebeast_fleet.playing import Playing
from kubebeast_fleet.spaces import Batch
from kubebeast_native import Episode, StreamInfo


class AsyncFleetVectorEnv:
    """`recv` gives the rows that are ready first, `send` takes the actions for any rows that were received.

        while True:
            observations, rewards, terminated, truncated, info = envs.recv()
            envs.send(policy(observations), info["env_id"])

    Environments, spaces and losses are as in FleetVectorEnv. The environments of one stream step together, when each of
    them has its action. For one thread.
    """

    def __init__(self, address: str, num_envs: int, batch_size: int, **options: Unpack[FleetOptions]) -> None:
        """As FleetVectorEnv; batch_size: rows of `recv`, at most num_envs."""
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
        """Blocks until batch_size rows are ready, by default the constructor's, and hands out the oldest.

        Returns observations, rewards float32 [M], terminated, truncated, and info with "env_id", int64 [M]: which
        environment each is of; "is_first", bool [M]: it begins an episode; and "lost", bool [M].

        FleetTimeoutError after fleet_timeout_s without a row. ValueError for more rows than can come, as those that
        were received and not answered keep their environments waiting.
        """
        rows = self._playing.exchange
        ids = rows.receive(self.batch_size if batch_size is None else batch_size)
        observation = self._playing.observation([array[ids] for array in rows.observation])
        info = {"env_id": ids, "is_first": rows.is_first[ids], "lost": rows.lost[ids]}
        return observation, rows.rewards[ids], rows.terminated[ids], rows.truncated[ids], info

    def send(self, actions: Any, env_id: ArrayLike) -> None:
        """Acts in the environments env_id [M], whose rows were received and not answered; never blocks.

        ValueError for actions that are not of the space, and for an environment whose row is not out.
        """
        ids = np.asarray(env_id)
        self._playing.exchange.answer(self._playing.action_leaves(actions, ids.size), ids)

    @property
    def address(self) -> str:
        """Where env-servers are listened for, with the port that was picked."""
        return self._playing.address

    @property
    def http_port(self) -> int | None:
        """The port of http_address; None without one."""
        return self._playing.http_port

    def stats(self) -> dict[str, int]:
        """As FleetVectorEnv.stats."""
        return self._playing.stats()

    def streams(self) -> list[StreamInfo]:
        """The streams that play. From any thread."""
        return self._playing.streams()

    def take_episodes(self) -> list[Episode]:
        """As FleetVectorEnv.take_episodes."""
        return self._playing.take_episodes()

    def close(self) -> None:
        """Ends all streams. Idempotent."""
        self._playing.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
