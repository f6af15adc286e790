"""The next checkpoint to play is found while the learner saves and deletes them."""

from collections.abc import Iterable, Iterator
from typing import Any

from kubebeast_common.atomic_file import SUFFIX
from kubebeast_learner.play.follow.checkpoints import CheckpointFeed
from kubebeast_runs.storage.local import LocalStorage
from tests.unit.learner.play.follow.followed_run import FollowedRun


def steps_of(waiting: Iterable[Any]) -> list[int]:
    return [saved.step for saved in waiting]


def taken(feed: CheckpointFeed) -> Iterator[Any]:
    return iter(feed.take, None)


def test_the_newest_is_taken_and_those_before_it_stand_by(run: FollowedRun) -> None:
    feed = CheckpointFeed(LocalStorage(run.folder), None)
    run.save(10, 20, 30)
    assert steps_of(taken(feed)) == [30, 20, 10]
    run.save(40)
    assert (steps_of(taken(feed)), feed.newest_step) == ([40], 40)


def test_those_that_appear_while_one_is_played_are_not_skipped(run: FollowedRun) -> None:
    feed = CheckpointFeed(LocalStorage(run.folder), None)
    run.save(10, 20, 30)
    assert steps_of([feed.take()]) == [30]
    run.save(40)
    feed.look()
    assert feed.skip_older() == 2
    assert steps_of(taken(feed)) == [40]


def test_those_that_were_deleted_before_their_turn_count_as_skipped(run: FollowedRun) -> None:
    feed = CheckpointFeed(LocalStorage(run.folder), None)
    run.save(10)
    feed.look()
    run.path(10).unlink()
    run.save(20)
    assert steps_of([feed.take()]) == [20]
    assert feed.skip_older() == 1


def test_a_file_that_is_still_being_written_is_none(run: FollowedRun) -> None:
    run.path(10).with_suffix(".pt" + SUFFIX).write_bytes(b"half of it")
    assert CheckpointFeed(LocalStorage(run.folder), None).take() is None


def test_a_learner_that_went_back_behind_a_damaged_checkpoint_is_followed(run: FollowedRun) -> None:
    run.save(10, 30)
    feed = CheckpointFeed(LocalStorage(run.folder), 30)
    assert feed.take() is None
    run.path(30).unlink()
    run.save(20)
    assert steps_of(taken(feed)) == [20]
    run.save(30)
    assert steps_of(taken(feed)) == [30]


def test_a_taken_one_that_was_deleted_or_replaced_is_not_there(run: FollowedRun) -> None:
    feed = CheckpointFeed(LocalStorage(run.folder), None)
    run.save(10, 20)
    newest, older = taken(feed)
    assert feed.is_there(newest) and feed.is_there(older)

    run.path(10).unlink()
    run.save(20)

    assert not feed.is_there(newest) and not feed.is_there(older)
    assert steps_of(taken(feed)) == [20]
