"""Everything that the real env-server sends keeps to the contract, even if its environments break."""

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubebeast_common.backoff import Backoff
from kubebeast_conformance.contract.env_server_stream import check_stream
from kubebeast_conformance.contract.rows import ADDITIONS
from kubebeast_envserver.envs.factory import EnvironmentFailure, FaultPolicy, HostedEnv, make_vector_env
from kubebeast_envserver.faults.watched_env import WatchedEnv
from kubebeast_envserver.rows.stream_status import StreamStatus
from kubebeast_envserver.stream.connection import RefusedError
from kubebeast_envserver.stream.session import Identity, Session
from kubebeast_envserver.stream.transport import open_stream
from kubebeast_protos.v1 import ABSENT_MINOR, PROTOCOL_MINOR
from kubebeast_protos.v1 import actor_pool_pb2 as pb
from tests.integration.envserver_faults import STEP_FAULTS, WELL
from tests.integration.envserver_learner import TIMEOUT_S, dtype_name, learner
from tests.integration.hunt import ABSENT, ENDS, HUNT, NUM_AGENTS, PLAYS
from tests.integration.hunt import FAULTS as HUNT_FAULTS

pytestmark = pytest.mark.usefixtures("transport")

FAULTS = "tests.integration.envserver_faults"
REPEATABLE = settings(deadline=None, derandomize=True, max_examples=100)
MINORS = range(PROTOCOL_MINOR + 1)
IDENTITY = Identity(env_server_id="pod-0", instance_id="1", env_id="Test-v0")


def random_actions(hello: pb.Hello, message: pb.Observations) -> pb.ActResponse:
    """Answers every step with different actions."""
    values = np.random.default_rng(message.step)
    leaves = [
        values.integers(max(leaf.num_categories, 1), size=(hello.num_envs, *leaf.shape)).astype(dtype_name(leaf))
        for leaf in hello.action
    ]
    return pb.ActResponse(actions=pb.Actions(step=message.step, leaves=[leaf.tobytes() for leaf in leaves]))


def traced_actions(hello: pb.Hello, message: pb.Observations) -> pb.ActResponse:
    """Answers with random actions and requests the env-server's times."""
    response = random_actions(hello, message)
    response.actions.traced = True
    return response


def recorded(env: HostedEnv, minor: int, num_steps: int) -> list[pb.ActRequest]:
    """Returns the messages of a session to a learner of that minor version, up to `num_steps` steps or a failure."""
    answer = random_actions if minor < ADDITIONS["Actions.traced"] else traced_actions
    with learner(minor=minor, answer=answer) as server, open_stream(server.address) as stream:
        session = Session(stream, env, IDENTITY, lz4=True, welcome_timeout_s=TIMEOUT_S, max_steps=num_steps)
        with contextlib.closing(env), contextlib.suppress(EnvironmentFailure):
            session.run()
        requests = [server.received.get(timeout=TIMEOUT_S)]
        while not requests[-1].HasField("bye"):
            requests.append(server.received.get(timeout=TIMEOUT_S))
        return requests


@pytest.mark.parametrize("minor", MINORS)
@pytest.mark.parametrize(
    ("env", "num_envs", "kwargs"),
    [
        ("Mock", 3, {"episode_length": 5}),
        ("CartPole-v1", 8, {}),
        ("kubebeast_envserver.catch:Catch-v0", 1, {}),
        ("kubebeast_envserver.catch:vector/Catch-v0", 2, {}),
        ("FrozenLake-v1", 2, {"max_episode_steps": 7}),
        ("Blackjack-v1", 5, {}),
        ("BreakoutNoFrameskip-v4", 2, {"max_num_frames_per_episode": 300}),
        ("PongNoFrameskip-v4", 2, {"max_num_frames_per_episode": 80}),
        ("ALE/Freeway-v5", 1, {"max_num_frames_per_episode": 200, "grayscale": False}),
    ],
)
def test_environments_that_are_well(env: str, num_envs: int, kwargs: dict[str, Any], minor: int) -> None:
    status = StreamStatus()
    hosted = make_vector_env(env, num_envs, env_kwargs=kwargs, seed=1, full_stacks=False, status=status)
    books = check_stream(recorded(WatchedEnv(hosted, status), minor, 100), minor)
    assert (books.rows, books.env_steps, books.interruptions) == (101 * num_envs, status.env_steps, 0)
    assert books.episodes == status.episodes_terminated + status.episodes_truncated > 0


@pytest.fixture(scope="module", autouse=True)
def without_back_off() -> Iterator[None]:
    """Removes delays, so that the script, not the time, decides when an environment is created again."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Backoff, "next_delay_s", lambda backoff: 0.0)
        yield


SCRIPTS = st.lists(st.sampled_from([*[WELL] * len(STEP_FAULTS), *STEP_FAULTS]), max_size=100)
"""One word for each call of a constructor, a reset or a step: half of them break."""


@REPEATABLE
@given(SCRIPTS, st.integers(1, 8), st.integers(1, 5), st.sampled_from(MINORS))
def test_environments_that_break_in_any_way_at_any_time(
    script: list[str], num_envs: int, max_failures: int, minor: int
) -> None:
    status = StreamStatus()
    words = iter([WELL, *script])  # an env-server sends nothing if its first environment cannot be made
    env = make_vector_env(
        f"{FAULTS}:FollowsScript-v0",
        num_envs,
        env_kwargs={"script": words},
        full_stacks=False,
        policy=FaultPolicy(max_failures=max_failures),
        status=status,
    )
    requests = recorded(WatchedEnv(env, status), minor, 50)
    books = check_stream(requests, minor)
    if requests[-1].bye.reason == pb.Bye.REASON_SHUTDOWN:
        assert (books.env_steps, books.episodes) == (status.env_steps, status.episodes_terminated)


WORDS = st.lists(st.sampled_from(PLAYS * 8 + ENDS + ABSENT + HUNT_FAULTS), min_size=NUM_AGENTS, max_size=NUM_AGENTS)
GAMES = st.lists(st.lists(WORDS.map("".join), min_size=1, max_size=8), max_size=20)


@REPEATABLE
@given(GAMES, st.integers(1, 3), st.integers(1, 5))
def test_agents_that_end_come_and_break_in_any_way_at_any_time(
    games: list[list[str]], num_envs: int, max_failures: int
) -> None:
    status = StreamStatus()
    env = make_vector_env(
        HUNT,
        num_envs * NUM_AGENTS,
        env_kwargs={"games": iter(games)},
        full_stacks=False,
        policy=FaultPolicy(max_failures=max_failures),
        status=status,
    )
    requests = recorded(WatchedEnv(env, status), PROTOCOL_MINOR, 50)
    books = check_stream(requests)
    if requests[-1].bye.reason == pb.Bye.REASON_SHUTDOWN:
        assert books.env_steps == status.env_steps
        assert books.episodes == status.episodes_terminated + status.episodes_truncated


@pytest.mark.parametrize("minor", range(ABSENT_MINOR))
def test_a_learner_that_knows_no_absent_agents_gets_no_row_of_them(minor: int) -> None:
    with learner(minor=minor) as server, open_stream(server.address) as stream:
        env = make_vector_env(HUNT, NUM_AGENTS, full_stacks=False)
        session = Session(stream, env, IDENTITY, lz4=True, welcome_timeout_s=TIMEOUT_S)
        with contextlib.closing(env), pytest.raises(RefusedError, match=rf"version 1\.{minor} knows no .*takes 1\.4"):
            session.run()
        assert server.received.get(timeout=TIMEOUT_S).HasField("hello") and server.received.empty()
