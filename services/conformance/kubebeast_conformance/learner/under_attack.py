"""Checks of a learner flooded by a peer without a token: the flood ends, streams continue, and others can join."""

import functools
from concurrent.futures import ThreadPoolExecutor, wait

import grpc

from kubebeast_conformance.check import Check, SkippedError
from kubebeast_conformance.contract.violation import ViolationError
from kubebeast_conformance.learner.floods import FLOODS, MOST_BYTES, Flood, run
from kubebeast_conformance.learner.subject import Learner
from kubebeast_conformance.wire.http2 import ClosedError, RawConnection

NUM_STEPS = 3
"""Number of steps of a stream after each flood."""


def ends_floods_of(kind: str, subject: Learner) -> None:
    if not subject.options.floods:
        raise SkippedError("takes --floods, and a learner that may be attacked")
    if subject.options.address.startswith("unix:"):
        raise SkippedError("takes a learner that listens on TCP")
    with subject.joined() as witness, ThreadPoolExecutor(1) as floods:
        witness.step()
        for flood in (each for each in FLOODS if each.kind == kind):
            end_of_flood = floods.submit(_flood, subject, flood)
            while not wait([end_of_flood], subject.options.step_timeout_s / 2).done:  # a flood may last longer
                witness.play(1, "C5")
            end_of_flood.result()
            witness.play(NUM_STEPS, "C5")
    with subject.stream() as newcomer:
        end = newcomer.try_to_join()
        if end is not None and end.code is not grpc.StatusCode.RESOURCE_EXHAUSTED:
            raise ViolationError("C6", "", f"after the floods a stream ended with {end} instead of a Welcome")


def _flood(subject: Learner, flood: Flood) -> None:
    options = subject.options
    try:
        with RawConnection(options.address, options.access, timeout_s=options.patience_s) as connection:
            sent = run(connection, flood, MOST_BYTES)
            is_open = sent >= MOST_BYTES and not connection.wait_closed()
    except ClosedError:
        return
    except TimeoutError:
        raise ViolationError("C6", "", f"{flood.name}: the connection is neither read nor closed") from None
    if is_open:
        raise ViolationError("C6", "", f"{flood.name}: the connection is open after {sent} bytes")


CHECKS = tuple(
    Check(f"floods of {kind}", ("C6", "C5"), functools.partial(ends_floods_of, kind))
    for kind in dict.fromkeys(flood.kind for flood in FLOODS)
)
