"""The fleet is a gymnasium vector environment, with real env-servers that come and go."""

import itertools
import json
import urllib.request
from contextlib import closing
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers.vector import RecordEpisodeStatistics

from harness.certificates import Authority, Pair
from harness.ports import free_address
from kubebeast_common.access.tls_files import TlsError
from kubebeast_common.access.token_file import TokenFileError
from kubebeast_fleet import FleetTimeoutError, FleetVectorEnv
from tests.integration.envserver_learner import next_log, watched_log
from tests.integration.fleet_of_threads import PATIENCE_S, assert_books_balance, socket_address, stream
from tests.integration.leveled_env import EPISODE_STEPS


@pytest.fixture
def address(tmp_path: Path) -> str:
    return socket_address(tmp_path)


def test_it_plays_the_same_games_as_environments_of_this_process(address: str) -> None:
    local = SyncVectorEnv([lambda: gymnasium.make("CartPole-v1")] * 3, autoreset_mode=AutoresetMode.NEXT_STEP)
    with stream(address, 3, env="CartPole-v1", seed=7):
        fleet = FleetVectorEnv(address, 3)
        expected, _ = local.reset(seed=[7, 8, 9])
        observations, _ = fleet.reset()
        np.testing.assert_array_equal(observations, expected)
        assert fleet.single_action_space == local.single_action_space
        local.action_space.seed(0)
        for _ in range(200):
            actions = local.action_space.sample()
            for mine, theirs in zip(fleet.step(actions)[:4], local.step(actions)[:4], strict=True):
                np.testing.assert_array_equal(mine, theirs)
        assert_books_balance(fleet)
        assert len(fleet.take_episodes()) > 5
        fleet.close()


def test_a_lost_stream_is_truncated_and_the_reserve_takes_its_places(address: str) -> None:
    with (
        stream(address, 2),
        stream(address, 1) as leaver,
        closing(FleetVectorEnv(address, 3)) as envs,
    ):
        envs.reset()
        with stream(address, 1) as successor:
            while envs.stats()["streams_in_reserve"] < 1:
                envs.step([0, 0, 0])
            while (row := envs.step([0, 0, 0]))[2].any():
                pass  # until all three play
            before = row[0]
            leaver.shutdown.request()
            observations, rewards, terminated, truncated, info = envs.step([0, 0, 0])
            assert isinstance(observations, np.ndarray) and isinstance(before, np.ndarray)
            (place,) = np.flatnonzero(info["lost"])
            assert (rewards[place], terminated[place], truncated[place]) == (0.0, False, True)
            np.testing.assert_array_equal(observations[place], before[place])
            observations, rewards, _, _, info = envs.step([0, 0, 0])
            assert isinstance(observations, np.ndarray)
            np.testing.assert_array_equal(observations[place], [0.0, 0.0])
            assert not info["lost"].any() and rewards[place] == 0.0
            for _ in range(3):
                envs.step([0, 0, 0])
            assert successor.status.env_steps == 3
            assert_books_balance(envs)


LEVELED = "tests.integration.leveled_env:Leveled-v0"


def test_each_episode_has_the_options_that_the_trainer_has_chosen(address: str) -> None:
    levels = itertools.count()
    with (
        stream(address, 2, env=LEVELED),
        closing(FleetVectorEnv(address, 2, next_options=lambda: {"level": next(levels)})) as envs,
    ):
        first, _ = envs.reset()
        assert isinstance(first, np.ndarray) and first[:, 0].tolist() == [0.0, 1.0]
        for _ in range(4 * EPISODE_STEPS):
            observations = envs.step([0, 0])[0]
        episodes = envs.take_episodes()

    assert isinstance(observations, np.ndarray) and observations[:, 0].tolist() == [6.0, 7.0]
    assert [(json.loads(episode.options)["level"], episode.episode_return) for episode in episodes] == [
        (level, float(level)) for level in range(6)
    ]


def step_for_ever(envs: FleetVectorEnv) -> None:
    while True:
        envs.step([0, 0])


def test_an_error_in_the_choice_of_options_is_raised_by_the_next_step(address: str) -> None:
    levels = iter([{"level": 1}] * 40)
    with (
        stream(address, 2, env=LEVELED),
        closing(FleetVectorEnv(address, 2, next_options=lambda: next(levels))) as envs,
    ):
        envs.reset()
        with pytest.raises(StopIteration):
            step_for_ever(envs)


def test_an_environment_that_fails_is_truncated_and_comes_back(address: str) -> None:
    with stream(address, 2, env="tests.integration.envserver_faults:WearsOut-v0", env_kwargs={"lasts": 4}):
        envs = FleetVectorEnv(address, 2)
        envs.reset()
        for _ in range(20):
            *_, truncated, info = envs.step(envs.action_space.sample())
            np.testing.assert_array_equal(truncated, info["lost"])
        assert envs.stats()["rows_lost"] >= 2
        assert_books_balance(envs)
        envs.close()


def test_without_an_env_server_it_gives_up_and_says_so(address: str) -> None:
    with pytest.raises(FleetTimeoutError, match=r"no row for 0\.3 s on unix:.*: 0 of 3 environments are here"):
        FleetVectorEnv(address, 3, fleet_timeout_s=0.3)


def test_a_fleet_that_is_gone_too_long_is_an_error_that_says_who_waits(address: str) -> None:
    with stream(address, 2), stream(address, 2):
        envs = FleetVectorEnv(address, 3, fleet_timeout_s=5.0)
        while envs.stats()["streams_in_reserve"] < 1:
            pass
        with pytest.raises(FleetTimeoutError, match=r"2 of 3 environments are here, and 1 streams in reserve") as error:
            envs.reset()
        assert "a multiple of --envs-per-stream" in str(error.value)
        envs.close()


def test_a_step_without_anybody_to_take_it_is_an_error(address: str) -> None:
    with stream(address, 1) as leaver:
        envs = FleetVectorEnv(address, 1, fleet_timeout_s=5.0)
        envs.reset()
        leaver.shutdown.request()
        leaver.join()
    with pytest.raises(FleetTimeoutError, match="0 of 1 environments are here"):
        envs.step([0])
    envs.close()


def test_tls_and_tokens_keep_strangers_out(
    ca: Authority, pair: Pair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = tmp_path / "token"
    token.write_text("s3cret\n")
    address = free_address()
    monkeypatch.chdir(tmp_path)
    with (
        watched_log() as log,
        stream(address, tls_ca=str(ca.pem)) as stranger,
        stream(address, tls_ca=str(ca.pem), token_file=str(token)) as friend,
    ):
        envs = FleetVectorEnv(address, 1, token_file="token", tls_cert=str(pair.cert), tls_key=str(pair.key))
        monkeypatch.chdir("/")  # the token is read again for each stream
        envs.reset()
        next_log(log, "refuses this env-server")
        for _ in range(5):
            envs.step([0])
        assert stranger.status.env_steps == 0 and friend.status.env_steps > 0
        assert envs.stats()["streams_unauthenticated"] == 1
        envs.close()


def test_files_that_cannot_be_used_are_named(address: str, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.touch()
    with pytest.raises(TokenFileError, match="holds no token"):
        FleetVectorEnv(address, 1, token_file=str(empty))
    with pytest.raises(TlsError, match="tls_cert"):
        FleetVectorEnv(address, 1, tls_cert=str(empty), tls_key=str(empty))
    with pytest.raises(ValueError, match="batch_size = 0: must be 1 to num_envs = 0"):
        FleetVectorEnv(address, 0)


def test_its_books_can_be_scraped(address: str) -> None:
    with stream(address, 2):
        envs = FleetVectorEnv(address, 2, http_address="127.0.0.1:0")
        envs.reset()
        for _ in range(7):
            envs.step([0, 0])
        url = f"http://127.0.0.1:{envs.http_port}"
        assert urllib.request.urlopen(f"{url}/readyz", timeout=PATIENCE_S).read() == b"ok\n"
        lines = urllib.request.urlopen(f"{url}/metrics", timeout=PATIENCE_S).read().decode().splitlines()
        envs.close()
    values = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    steps = values['kubebeast_steps_total{outcome="delivered"}']
    assert values['kubebeast_fleet_rows_total{kind="step"}'] == steps == "12.0"
    assert values['kubebeast_fleet_rows_total{kind="first"}'] == "4.0"
    assert values["kubebeast_envs"] == "2.0"


def test_wrappers_of_gymnasium_fit(address: str) -> None:
    with stream(address, 2):
        envs = RecordEpisodeStatistics(FleetVectorEnv(address, 2))
        envs.reset(seed=1)
        infos = [envs.step(envs.action_space.sample())[4] for _ in range(4)]
        assert infos[2]["episode"]["r"].tolist() == [3.0, 3.0]
        envs.close()


def test_a_later_reset_returns_the_rows_that_are_there(address: str) -> None:
    with stream(address, 1):
        envs = FleetVectorEnv(address, 1)
        with pytest.raises(ResetNeeded):
            envs.step([0])
        envs.reset()
        observations, *_ = envs.step([0])
        again, _ = envs.reset()
        np.testing.assert_array_equal(again, observations)
        assert envs.step([0])[1] == [1.0], "the episode goes on"
        envs.close()
        envs.close()
