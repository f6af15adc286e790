"""Levels of a curriculum reach the streams of a real pool, and env-servers that know none are logged once."""

from collections.abc import Iterator

import pytest

import kubebeast_native as native
from kubebeast_learner.actors.remote.level_feed import LevelFeed
from kubebeast_learner.curriculum.levels import Levels
from kubebeast_learner.curriculum.uniform import Uniform
from tests.unit.native.native_client import CORE_STATE_SIZE, NUM_LOGITS, Client, make_pool


@pytest.fixture
def pool() -> Iterator[native.ActorPool]:
    made = make_pool(episode_options=True)
    made.start()
    yield made
    made.close()


def make_feed(pool: native.ActorPool) -> LevelFeed:
    return LevelFeed(pool, Levels("uniform", Uniform([{"n": n} for n in range(3)], seed=1), ()))


def test_levels_are_ready_before_the_pool_opens(pool: native.ActorPool) -> None:
    feed = make_feed(pool)
    feed.start()
    pool.open(num_logits=NUM_LOGITS, core_state_size=CORE_STATE_SIZE)
    client = Client(pool.address)
    client.hello()
    feed.stop()
    client.close()

    stats = pool.stats()
    assert (stats["options_sent"], stats["options_repeated"]) == (2, 0)


def test_an_env_server_that_knows_no_options_is_logged_once(
    pool: native.ActorPool, caplog: pytest.LogCaptureFixture
) -> None:
    pool.open(num_logits=NUM_LOGITS, core_state_size=CORE_STATE_SIZE)
    feed = make_feed(pool)
    for minor in (native.OPTIONS_MINOR - 1, native.OPTIONS_MINOR - 1, native.OPTIONS_MINOR):
        client = Client(pool.address)
        client.hello(minor=minor)
        feed.look_at(pool.take_stream_events())
        client.close()

    (message,) = caplog.messages
    assert message == (
        "the env-server pod-0 has protocol version 1.6, which knows no options of episodes: its episodes have no "
        "level, which takes 1.7"
    )
