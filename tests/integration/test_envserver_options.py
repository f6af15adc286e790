"""An env-server resets its environments with the options that the learner has chosen for their episodes."""

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest

from kubebeast_envserver.envs.factory import HostedEnv, make_vector_env
from kubebeast_envserver.stream.codec import ProtocolError
from kubebeast_envserver.stream.connection import RefusedError
from kubebeast_envserver.stream.session import Identity, Session
from kubebeast_envserver.stream.transport import open_stream
from kubebeast_protos.v1 import actor_pool_pb2 as pb
from tests.integration.envserver_learner import TIMEOUT_S, FakeLearner, frames, zeros
from tests.integration.hunt import HUNT, NUM_AGENTS
from tests.integration.leveled_env import NONE

pytestmark = pytest.mark.usefixtures("transport")

MODULE = "tests.integration.leveled_env"
IDENTITY = Identity(env_server_id="pod-0", instance_id="1", env_id="Leveled-v0")


def options(*levels: tuple[int, int]) -> list[pb.EpisodeOptions]:
    return [pb.EpisodeOptions(env=env, options=f'{{"level":{level}}}') for env, level in levels]


class Choosing(FakeLearner):
    """A learner that sends options in its Welcome, and those of each step with its Actions."""

    def __init__(self, first: list[pb.EpisodeOptions], later: dict[int, list[pb.EpisodeOptions]]) -> None:
        super().__init__(answer=self._choose)
        self._first, self._later = first, later

    def welcome(self, hello: pb.Hello) -> pb.ActResponse:
        response = super().welcome(hello)
        response.welcome.episode_options.extend(self._first)
        return response

    def _choose(self, hello: pb.Hello, observations: pb.Observations) -> pb.ActResponse:
        response = zeros(hello, observations)
        response.actions.episode_options.extend(self._later.get(observations.step, []))
        return response


@contextlib.contextmanager
def choosing(first: list[pb.EpisodeOptions], later: dict[int, list[pb.EpisodeOptions]]) -> Iterator[FakeLearner]:
    server = Choosing(first, later)
    try:
        yield server
    finally:
        server.stop()


def played(env: HostedEnv, server: FakeLearner, num_steps: int = 0) -> list[list[float]]:
    """Plays a session; returns the level of each environment at each step."""
    with open_stream(server.address) as stream, contextlib.closing(env):
        Session(stream, env, IDENTITY, lz4=False, welcome_timeout_s=TIMEOUT_S, max_steps=num_steps).run()
    hello = server.next("hello")
    return [frames(hello, server.next("observations"), 0)[:, 0].tolist() for _ in range(num_steps + 1)]


def make(env: str, num_envs: int = 2, **kwargs: Any) -> HostedEnv:
    return make_vector_env(env, num_envs, full_stacks=False, **kwargs)


def test_each_reset_has_the_newest_options_of_its_environment() -> None:
    with choosing(options((0, 10), (1, 20)), {3: options((1, 21)), 7: options((0, 12), (1, 22))}) as server:
        levels = played(make(f"{MODULE}:Leveled-v0"), server, 8)

    assert levels == [*[[10, 20]] * 4, *[[10, 21]] * 4, [12, 22]]


def test_without_options_a_reset_has_none() -> None:
    with choosing([], {3: options((1, 21))}) as server:
        levels = played(make(f"{MODULE}:Leveled-v0"), server, 4)

    assert levels == [*[[NONE, NONE]] * 4, [NONE, 21]]


@pytest.mark.parametrize(
    ("env", "num_envs", "kind"),
    [
        (f"{MODULE}:Levelless-v0", 2, "Levelless environments"),
        (HUNT, NUM_AGENTS, "environments of several agents"),
        ("kubebeast_envserver.catch:vector/Catch-v0", 2, "environments of gymnasium.make_vec"),
        ("PongNoFrameskip-v4", 1, "Atari games"),
    ],
)
def test_environments_that_take_no_options_end_the_stream_in_words(env: str, num_envs: int, kind: str) -> None:
    with choosing(options((0, 1)), {}) as server:
        with pytest.raises(RefusedError, match=f"^{kind} take no options at a reset, but the learner has a curriculum"):
            played(make(env, num_envs), server)
        assert server.received.get(timeout=TIMEOUT_S).HasField("hello") and server.received.empty()


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        (pb.EpisodeOptions(env=2, options="{}"), "episode_options.env is 2, there are 2 environments"),
        (pb.EpisodeOptions(env=1, options="[1]"), r"episode_options of environment 1: '\[1\]' is no JSON object"),
        (pb.EpisodeOptions(env=1, options='{"a":NaN}'), "episode_options of environment 1: NaN is no JSON"),
    ],
)
def test_options_that_break_the_contract_end_the_stream(entry: pb.EpisodeOptions, reason: str) -> None:
    for first, later in ([entry], {}), ([], {0: [entry]}):
        with choosing(first, later) as server, pytest.raises(ProtocolError, match=reason):
            played(make(f"{MODULE}:Leveled-v0"), server)


def test_an_environment_that_changes_its_options_does_not_change_those_of_its_next_reset() -> None:
    with contextlib.closing(make(f"{MODULE}:Leveled-v0", 1)) as env:
        env.set_options({0: {"level": 7}})
        env.reset()
        assert env.reset().observation[0].tolist() == [[7.0]]
