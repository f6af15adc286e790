"""Where a learner's pages come from: its HTTP port."""

import http.client
from collections.abc import Mapping, Sequence
from typing import Protocol
from urllib.parse import urlsplit

from kubebeast_common.text import printable
from kubebeast_learner.observe.fleet.errors import NotFoundError, UnavailableError, WatchError
from kubebeast_learner.observe.fleet.state import GroupState, PodState
from kubebeast_learner.observe.scrape import MAX_PAGE_BYTES, page_text

REQUEST_TIMEOUT_S = 3.0
"""For connecting, and for every wait for bytes of the answer."""
MAX_REASON = 200
"""Characters of an error that may quote what was answered."""


class Source(Protocol):
    """A learner and what surrounds it. Methods block for their answers and raise WatchError; for one thread."""

    @property
    def name(self) -> str:
        """What is looked at, for people."""

    def page(self, path: str) -> str:
        """A page of the learner's, e.g. metrics. NotFoundError when it has none of that name."""

    def fleet(self) -> tuple[Mapping[str, PodState], Sequence[GroupState]]:
        """Env-servers' pods by name, and their groups; none outside of Kubernetes, no groups where they are secret."""


class DirectSource:
    """A learner whose HTTP port can be reached."""

    def __init__(self, url: str) -> None:
        """url: http or https, perhaps with a path that its pages are below."""
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
