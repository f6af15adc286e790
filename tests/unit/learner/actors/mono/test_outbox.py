"""Messages to another process leave in order, and only their thread waits for its reads."""

from multiprocessing import Pipe

import pytest

from kubebeast_learner.actors.mono.outbox import Outbox

MUCH = "x" * 2**20
"""More than a pipe holds."""


def test_messages_leave_in_order_although_they_are_read_later() -> None:
    mine, theirs = Pipe()
    outbox = Outbox(mine)
    sent = [MUCH, None, MUCH, 3]
    for message in sent:
        outbox.put(message)

    assert [theirs.recv() for _ in sent] == sent
    outbox.close()


def test_the_end_comes_in_the_middle_of_a_message_that_is_not_read() -> None:
    mine, theirs = Pipe()
    outbox = Outbox(mine)
    outbox.put(MUCH)
    assert theirs.poll(None), "the message has begun"
    outbox.close()

    with pytest.raises((EOFError, OSError)):
        theirs.recv()
    outbox.close()


def test_messages_to_a_process_that_has_ended_are_dropped() -> None:
    mine, theirs = Pipe()
    outbox = Outbox(mine)
    theirs.close()
    outbox.put(MUCH)
    outbox.put(MUCH)

    outbox.close()
