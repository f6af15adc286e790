"""Environments that break in the middle of a run return on the same stream: the real env-server and the real pool."""

import contextlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from kubebeast_envserver.envs.factory import FaultPolicy, HostedEnv, make_vector_env
from kubebeast_envserver.faults.watched_env import WatchedEnv
from kubebeast_envserver.rows.stream_status import StreamStatus
from kubebeast_envserver.stream.codec import leaf_spec
from kubebeast_envserver.stream.exit_code import ExitCode
from kubebeast_envserver.stream.session import Identity, Session
from kubebeast_envserver.stream.transport import open_stream
from tests.integration.envserver_faults import STEP_FAULTS, WELL
from tests.integration.envserver_learner import TIMEOUT_S, StreamThread
from tests.integration.playing_pool import WELL_SPEC, PlayingPool, env_spec

MODULE = "tests.integration.envserver_faults"
NUM_GAMES = 3
"""Games that every environment plays afterwards."""


@contextlib.contextmanager
def playing(env: HostedEnv, status: StreamStatus) -> Iterator[PlayingPool]:
    """Yields a pool with one stream of the environments, which plays until the block ends; then both books must
    agree.
    """
    spec = env_spec("Test-v0", map(leaf_spec, env.spec_observation), map(leaf_spec, env.spec_action))
    identity = Identity(env_server_id="pod-0", instance_id="1", env_id="Test-v0")
    with PlayingPool(spec) as pool, open_stream(pool.address) as stream, ThreadPoolExecutor(1) as threads:
        session = Session(stream, WatchedEnv(env, status), identity, lz4=True, welcome_timeout_s=TIMEOUT_S)
        played = threads.submit(session.run)
        try:
            yield pool
        finally:
            session.shut_down()
            pool.play_until(lambda: played.done() and not pool.stat("streams"))
        played.result()
        assert pool.stat("streams_ended_bye") == pool.stat("streams_accepted") == 1
        assert pool.stat("steps_sampled") == status.env_steps


def with_frame_stack(env: HostedEnv, frame_stack: int) -> HostedEnv:
    env.spec_observation = [replace(leaf, frame_stack=frame_stack) for leaf in env.spec_observation]
    return env


def scripted_env(
    num_envs: int, script: Sequence[str], status: StreamStatus, policy: FaultPolicy | None = None
) -> HostedEnv:
    """script: outcomes of the calls after the first reset, one word a call, environment after environment."""
    words = iter([WELL] * 2 * num_envs + list(script))
    kwargs = {"script": words}
    return make_vector_env(f"{MODULE}:FollowsScript-v0", num_envs, env_kwargs=kwargs, policy=policy, status=status)


def play_on(pool: PlayingPool, status: StreamStatus, num_envs: int) -> None:
    """Plays until as many games were won as `num_envs` environments have in NUM_GAMES."""
    num_episodes = status.episodes_terminated + NUM_GAMES * num_envs
    pool.play_until(lambda: status.episodes_terminated >= num_episodes)
    assert [event.kind for event in pool.events] == ["joined"]


@pytest.mark.parametrize("frame_stack", [1, 4])
@pytest.mark.parametrize("num_envs", [1, 8])
@pytest.mark.parametrize("fault", STEP_FAULTS)
def test_one_that_breaks_is_back_on_the_same_stream(fault: str, num_envs: int, frame_stack: int) -> None:
    status = StreamStatus()
    env = scripted_env(num_envs, [WELL] * (num_envs + num_envs // 2) + [fault], status)
    with playing(with_frame_stack(env, frame_stack), status) as pool:
        pool.play_until(lambda: status.env_restarts == 1)
        play_on(pool, status, num_envs)
        assert pool.stat("env_interruptions") == 1
        won = pool.native.take_episodes()
        assert {(episode.episode_return, episode.length) for episode in won} == {(3.0, 3)}
    assert (status.episodes_interrupted, status.env_restarts) == (1, 1)


@pytest.mark.parametrize("num_broken", [3, 8])
def test_several_may_break_at_once(num_broken: int) -> None:
    status = StreamStatus()
    with playing(scripted_env(8, ["exception"] * num_broken, status), status) as pool:
        pool.play_until(lambda: status.env_restarts == num_broken)
        play_on(pool, status, 8)
        assert pool.stat("env_interruptions") == num_broken
    assert status.episodes_interrupted == num_broken


@pytest.mark.parametrize("frame_stack", [1, 4])
def test_a_constructor_and_a_reset_may_break_again_before_the_environment_is_back(frame_stack: int) -> None:
    status = StreamStatus()
    breaks_in_step_constructor_and_reset = [WELL, "exception", "exception", WELL, "shape"]
    env = scripted_env(1, breaks_in_step_constructor_and_reset, status)
    with playing(with_frame_stack(env, frame_stack), status) as pool:
        pool.play_until(lambda: status.env_restarts == 3)
        play_on(pool, status, 1)
        assert pool.stat("env_interruptions") == 1
    assert status.episodes_interrupted == 1


def test_a_reset_that_breaks_between_two_games_interrupts_neither() -> None:
    status = StreamStatus()
    with playing(scripted_env(1, [WELL, WELL, WELL, "exception"], status), status) as pool:
        pool.play_until(lambda: status.env_restarts == 1)
        play_on(pool, status, 1)
    assert (status.failures_exception, status.episodes_interrupted) == (1, 0)


def test_a_reset_that_breaks_at_the_start_of_a_stream_is_tried_again() -> None:
    status = StreamStatus()
    words = iter([WELL, "exception"])
    env = make_vector_env(f"{MODULE}:FollowsScript-v0", 1, env_kwargs={"script": words}, status=status)
    with playing(env, status) as pool:
        pool.play_until(lambda: status.env_restarts == 1)
        play_on(pool, status, 1)
    assert status.episodes_interrupted == 0


def test_one_that_keeps_breaking_is_given_up_and_the_other_plays_on() -> None:
    status = StreamStatus()
    env = scripted_env(2, ["exception"], status, FaultPolicy(max_failures=1))
    with playing(env, status) as pool:
        pool.play_until(lambda: status.envs_quarantined == 1)
        play_on(pool, status, 8)
        assert pool.stat("env_interruptions") == 1
    assert status.episodes_interrupted == 1


def test_one_that_plays_on_for_long_after_it_broke_is_never_given_up() -> None:
    status = StreamStatus()
    breaks_4_times = ([WELL] * 200 + ["exception"]) * 4
    with playing(scripted_env(1, breaks_4_times, status, FaultPolicy(max_failures=2)), status) as pool:
        pool.play_until(lambda: status.env_restarts == 4)
        play_on(pool, status, 1)
    assert (status.failures_exception, status.envs_quarantined) == (4, 0)


def test_a_stream_whose_environments_are_all_given_up_says_so(caplog: pytest.LogCaptureFixture) -> None:
    options = {"env": f"{MODULE}:RaisesInStep-v0", "envs_per_stream": 2, "max_failures": 3}
    with PlayingPool(WELL_SPEC) as pool, StreamThread(address=pool.address, **options) as stream:
        assert pool.verdict_on(stream) == ExitCode.FAILED
        left = pool.wait_for_event("left")
    assert (left.reason, "every environment failed too often" in left.detail) == ("bye", True)
    assert pool.stat("env_interruptions") == 2
    assert caplog.text.count("is given up: 3 failures") == 2
    assert caplog.text.count("is created again") == 2  # the same reason is not logged twice
