"""The fleet offers EnvPool's recv and send, with real env-servers and a silent one."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kubebeast_fleet import AsyncFleetVectorEnv
from tests.integration.fleet_of_threads import socket_address, stream

Info = dict[str, Any]
ENDLESS: dict[str, Any] = {"env": "MountainCar-v0", "time_limit": 1_000_000}
"""An environment that stays in the middle of its first episode, as long as it is pushed to the left."""


@pytest.fixture
def address(tmp_path: Path) -> str:
    return socket_address(tmp_path)


def test_every_environment_plays_whoever_is_ready_first(address: str) -> None:
    with (
        stream(address, 2),
        stream(address, 1),
        stream(address, 1),
        AsyncFleetVectorEnv(address, 4, batch_size=2) as envs,
    ):
        steps = np.zeros(4, np.int64)
        returns = np.zeros(4)
        while steps.min() < 10:
            observations, rewards, terminated, truncated, info = envs.recv()
            assert isinstance(observations, np.ndarray) and observations.shape == (2, 2)
            ids = info["env_id"]
            assert len(set(ids.tolist())) == 2
            steps[ids] += 1
            np.testing.assert_array_equal(rewards, ~info["is_first"])
            returns[ids] = np.where(info["is_first"], 0.0, returns[ids] + rewards)
            assert (returns[ids][terminated] == 3.0).all() and not truncated.any()
            envs.send([0, 1], ids)
        stats = envs.stats()
        assert stats["rows_first"] + stats["rows_step"] == steps.sum() and stats["rows_lost"] == 0


def test_an_environment_without_an_action_does_not_hold_up_the_others(address: str) -> None:
    with stream(address, 1), stream(address, 1), AsyncFleetVectorEnv(address, 2, batch_size=1) as envs:
        *_, waiting = envs.recv()
        for _ in range(20):
            *_, info = envs.recv()
            assert info["env_id"] != waiting["env_id"]
            envs.send([0], info["env_id"])
        envs.send([0], waiting["env_id"])
        met = {int(envs.recv()[4]["env_id"][0]) for _ in range(2)}
        assert met == {0, 1}


def test_some_environments_can_be_asked_for_more_than_others(address: str) -> None:
    with (
        stream(address, 1),
        stream(address, 1),
        AsyncFleetVectorEnv(address, 2, batch_size=2, max_envs_per_stream=1) as envs,
    ):
        *_, info = envs.recv()
        envs.send([0], info["env_id"][:1])
        _, rewards, *_, alone = envs.recv(1)
        assert alone["env_id"] == info["env_id"][:1] and rewards == [1.0]
        with pytest.raises(ValueError, match="2 of 2 rows wait for an action"):
            envs.recv(1)


def test_a_lost_environment_says_so_under_its_id(address: str) -> None:
    def play() -> Info:
        """Plays one row of one environment, with an action for it."""
        *_, info = envs.recv()
        envs.send([0], info["env_id"])
        return info

    with (
        stream(address, **ENDLESS) as leaver,
        stream(address, **ENDLESS),
        AsyncFleetVectorEnv(address, 2, batch_size=1) as envs,
    ):
        seen: set[int] = set()
        while len(seen) < 2:  # an env-server that leaves before its first row loses nothing
            seen.update(play()["env_id"].tolist())
        with stream(address, **ENDLESS):
            leaver.shutdown.request()
            while not (lost := play())["lost"].any():
                pass
            assert not lost["is_first"].any()
            while (successor := play())["env_id"] != lost["env_id"]:
                pass
            assert successor["is_first"].all() and not successor["lost"].any()
