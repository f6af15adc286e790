"""A thread keeps the options of coming episodes ready in a real pool."""

import queue
import threading
from collections.abc import Iterator

import pytest

import kubebeast_native as native
from kubebeast_common.pool.options_feed import OptionsFeed
from tests.unit.native.native_client import make_pool

PLACES = 32
"""Places for options of a pool without environments."""
TIMEOUT_S = 60.0


@pytest.fixture
def pool() -> Iterator[native.ActorPool]:
    made = make_pool(episode_options=True)
    yield made
    made.close()


def test_a_feed_fills_the_places_of_the_pool(pool: native.ActorPool) -> None:
    drawn: queue.SimpleQueue[int] = queue.SimpleQueue()

    def draw(count: int) -> list[str]:
        drawn.put(count)
        return ["{}"] * count

    feed = OptionsFeed(pool, draw)
    feed.start()
    total = 0
    while total < PLACES:
        total += drawn.get(timeout=TIMEOUT_S)
    feed.stop()

    assert total == PLACES
    assert pool.wait_options_room(0) is None
    feed.raise_error()


def test_the_first_filling_is_in_the_calling_thread(pool: native.ActorPool) -> None:
    threads: list[threading.Thread] = []

    def draw(count: int) -> list[str]:
        threads.append(threading.current_thread())
        return ["{}"] * count

    OptionsFeed(pool, draw).fill()

    assert threads == [threading.current_thread()]
    assert pool.wait_options_room(0) is None


@pytest.mark.parametrize(("texts", "error"), [(None, KeyError), (["3"], ValueError)])
def test_an_error_ends_the_thread_and_is_kept(
    pool: native.ActorPool, texts: list[str] | None, error: type[Exception]
) -> None:
    def draw(count: int) -> list[str]:
        if texts is None:
            raise KeyError("no level")
        return texts

    feed = OptionsFeed(pool, draw)
    feed.start()
    feed.join(TIMEOUT_S)

    with pytest.raises(error):
        feed.raise_error()
    feed.stop()


def test_a_pool_that_is_closed_ends_the_thread(pool: native.ActorPool) -> None:
    feed = OptionsFeed(pool, lambda count: ["{}"] * count)
    feed.start()
    pool.close()
    feed.join(TIMEOUT_S)

    assert not feed.is_alive()
    with pytest.raises(native.ClosedError):
        feed.raise_error()
