"""Polls for notices, on a thread of their own."""

import contextlib
import logging
import threading
from collections.abc import Iterator

from kubebeast_common.backoff import Backoff
from kubebeast_learner.notices.choice import source_of
from kubebeast_learner.notices.inbox import Notices
from kubebeast_learner.notices.notice import Notice, NoticeSource
from kubebeast_learner.ranks.place import Place

POLL_S = 2.0
"""Time between two polls. The shortest notice, of Google Cloud and of Azure's spot VMs, comes 30 s before the end."""
LONGEST_RETRY_S = 30.0

logger = logging.getLogger(__name__)


class NodeWatch:
    """Polls a source until it is closed, and adds each notice to `notices` once, as long as it stands.

    Its thread ends with the process in any case. Failed polls are counted; a warning is logged for the first of them,
    and another one for the poll that succeeds again.
    """

    def __init__(self, name: str, source: NoticeSource, notices: Notices, poll_s: float = POLL_S) -> None:
        """name: the setting, for messages. poll_s: time between two polls, which doubles with every failed one."""
        self._name, self._source, self._notices, self._poll_s = name, source, notices, poll_s
        self._closed = threading.Event()
        self._known: frozenset[str] = frozenset()
        self._is_failing = False
        threading.Thread(target=self._run, name="node-notice", daemon=True).start()

    def close(self) -> None:
        """Ends the polls; does not wait for one that blocks."""
        self._closed.set()

    def _run(self) -> None:
        backoff = Backoff(2 * self._poll_s, max(LONGEST_RETRY_S, self._poll_s))
        wait_s = 0.0
        while not self._closed.wait(wait_s):
            try:
                found = self._source.poll()
            except Exception as error:  # of any response: training goes on
                self._note_failure(error)
                wait_s = backoff.next_delay_s()
                continue
            backoff.reset()
            wait_s = self._poll_s
            if not self._closed.is_set():
                self._note({notice.key: notice for notice in found})

    def _note_failure(self, error: Exception) -> None:
        self._notices.num_failures += 1
        if not self._is_failing:
            text = "node_notice = %r: %s; training goes on, and no notice is seen until a poll succeeds"
            logger.warning(text, self._name, error)
        self._is_failing = True

    def _note(self, found: dict[str, Notice]) -> None:
        if self._is_failing:
            logger.warning("node_notice = %r: polls succeed again", self._name)
        self._is_failing = False
        for key, notice in found.items():
            if key not in self._known:
                logger.warning("notice for this node: %s; a checkpoint follows, training goes on", notice)
                self._notices.add()
        self._known = frozenset(found)


@contextlib.contextmanager
def watching(node_notice: str, place: Place, notices: Notices) -> Iterator[None]:
    """Polls for notices during the context, if there is a setting. Ranks of one node share the first one's polls."""
    if not node_notice or place.local_rank != 0:
        yield
        return
    with contextlib.closing(NodeWatch(node_notice, source_of(node_notice), notices)):
        yield
