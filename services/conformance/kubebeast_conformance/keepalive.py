"""Check of rule T5: the pings of a peer on an idle connection."""

import time

from kubebeast_conformance.check import SkippedError
from kubebeast_conformance.contract.violation import ViolationError
from kubebeast_conformance.wire.access import Access
from kubebeast_conformance.wire.relay import Relay

SHORTEST_INTERVAL_S = 10.0
ANSWER_S = 10.0
_EARLY_S = 0.5
"""Tolerance for timers and networks that shorten an interval."""
_LATE_S = 5.0
_SILENCE_S = 45.0
"""Longest wait for a ping, more than twice the interval that the contract recommends."""
LONGEST_S = 2 * _SILENCE_S + ANSWER_S + _LATE_S


def require_visible_pings(access: Access, address: str) -> None:
    """Raises SkippedError if a relay cannot read the traffic between the peers."""
    if access.tls:
        raise SkippedError("pings within TLS cannot be read between the two")
    if address.startswith("unix:"):
        raise SkippedError("pings can be read over TCP only")


def check_keepalive(relay: Relay) -> None:
    """Blocks for at most LONGEST_S seconds. During this time, neither side may send messages.

    Raises ViolationError, and SkippedError if the peer sends no pings.
    """
    if not relay.pings(1, _SILENCE_S):
        raise SkippedError(f"it sent no ping within {_SILENCE_S:g} s")
    at = relay.pings(2, SHORTEST_INTERVAL_S - _EARLY_S)
    if len(at) > 1:
        raise ViolationError("T5", "", f"a ping {at[1] - at[0]:.1f} s after the one before")
    relay.cut()
    at = relay.pings(2, _SILENCE_S)
    if len(at) < 2:
        raise SkippedError(f"it sent no second ping within {_SILENCE_S:g} s")
    left_s = at[1] + ANSWER_S + _LATE_S - time.monotonic()
    if not relay.is_given_up(max(left_s, 0.0)):
        waited_s = time.monotonic() - at[1]
        raise ViolationError("T5", "", f"it keeps a connection {waited_s:.1f} s after a ping without an answer")
