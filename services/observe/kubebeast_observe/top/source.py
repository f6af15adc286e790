"""Source of a learner's pages: its HTTP port."""

import http.client
from collections.abc import Mapping, Sequence
from typing import Protocol
from urllib.parse import urlsplit

from kubebeast_common.text import printable
from kubebeast_observe.errors import NotFoundError, UnavailableError, WatchError
from kubebeast_observe.fleet.state import GroupState, PodState
from kubebeast_observe.scrape import MAX_PAGE_BYTES, page_text

REQUEST_TIMEOUT_S = 3.0
"""Timeout for connecting, and for every wait for bytes of the answer."""
MAX_REASON = 200
"""Maximum number of characters of an error that may quote the answer."""


class Source(Protocol):
    """A learner and its surroundings. Methods block for their answers and raise WatchError; not thread-safe."""

    @property
    def name(self) -> str:
        """The displayed name of the source."""

    def page(self, path: str) -> str:
        """Returns a page of the learner, e.g. metrics. Raises NotFoundError if it does not exist."""

    def notes(self) -> Sequence[str]:
        """Returns the reasons why pods do not run; empty outside of Kubernetes."""

    def fleet(self) -> tuple[Mapping[str, PodState], Sequence[GroupState]]:
        """Returns the env-servers' pods by name, and their groups. Both are empty outside of Kubernetes; groups are
        also empty if they may not be read.
        """


class DirectSource:
    """A learner with a reachable HTTP port."""

    def __init__(self, url: str) -> None:
        """url: http or https, optionally with a base path of the pages."""
        self.name = url.rstrip("/")
        self._parts = urlsplit(self.name)

    def page(self, path: str) -> str:
        make = http.client.HTTPSConnection if self._parts.scheme == "https" else http.client.HTTPConnection
        connection = make(self._parts.hostname or "", self._parts.port, timeout=REQUEST_TIMEOUT_S)
        try:
            connection.request("GET", f"{self._parts.path}/{path}")
            answer = connection.getresponse()
            body = answer.read(MAX_PAGE_BYTES + 1)
        except (OSError, http.client.HTTPException) as error:
            reason = printable(str(error), MAX_REASON) or type(error).__name__
            raise UnavailableError(f"the learner {self.name} cannot be reached: {reason}") from error
        finally:
            connection.close()
        if answer.status == http.HTTPStatus.NOT_FOUND:
            raise NotFoundError(f"{self.name} is not a learner: it has no /{path}")
        if answer.status != http.HTTPStatus.OK:
            reason = printable(answer.reason, MAX_REASON)
            raise WatchError(f"{self.name}/{path} answers {answer.status} {reason}")
        return page_text(body, f"{self.name}/{path}")

    def fleet(self) -> tuple[Mapping[str, PodState], Sequence[GroupState]]:
        return {}, ()

    def notes(self) -> Sequence[str]:
        return ()
