"""Checks of the learner's limits: sizes, gRPC's compression, timeouts."""

import contextlib
import json

import grpc

from kubebeast_conformance.check import Check, SkippedError
from kubebeast_conformance.contract.violation import ViolationError, require
from kubebeast_conformance.keepalive import LONGEST_S, check_keepalive
from kubebeast_conformance.learner.subject import Learner
from kubebeast_protos.v1 import actor_pool_pb2 as pb

Code = grpc.StatusCode


def refuses_what_grpc_compressed(subject: Learner) -> None:
    def change(hello: pb.Hello) -> None:
        hello.env_config = json.dumps({"kwargs": {"text": "x" * 4000}}, separators=(",", ":"))

    with subject.stream(change, compression=grpc.Compression.Gzip) as stream:
        stream.send(pb.ActRequest(hello=stream.hello))
        stream.expect_status("C2", Code.INVALID_ARGUMENT, "in answer to a message that gRPC compressed")


def refuses_what_is_too_large(subject: Learner) -> None:
    with subject.joined() as witness, subject.joined() as stream:
        witness.step()
        stream.send(bytes((subject.options.max_message_mib << 20) + 1))
        stream.expect_status("C3", Code.RESOURCE_EXHAUSTED, "in answer to a message above the limit")
        witness.play(2, "C5")


def waits_so_long_for_a_hello(subject: Learner) -> None:
    options = subject.options
    with subject.stream() as stream:
        within_s = options.handshake_timeout_s + options.patience_s
        stream.expect_status("S5", Code.DEADLINE_EXCEEDED, "without a Hello", within_s=within_s)


def waits_so_long_for_observations(subject: Learner) -> None:
    options = subject.options
    with subject.joined() as silent, subject.joined() as stopped:
        stopped.step()
        within_s = options.step_timeout_s + options.patience_s
        for stream in (silent, stopped):
            stream.expect_status("S5", Code.DEADLINE_EXCEEDED, "without Observations", within_s=within_s)


def refuses_one_too_many(subject: Learner) -> None:
    limit = subject.options.max_streams
    if not limit:
        raise SkippedError("takes --max-streams")
    with subject.joined() as witness, contextlib.ExitStack() as others:
        for _ in range(limit):
            end = others.enter_context(subject.stream()).try_to_join()
            if end is not None:
                require(end.code is Code.RESOURCE_EXHAUSTED, "S7", "", f"{end} instead of RESOURCE_EXHAUSTED")
                witness.play(2, "C5")
                return
    raise ViolationError("S7", "", f"it has taken {limit + 1} streams at a time")


def pings_now_and_then(subject: Learner) -> None:
    if not subject.options.long_waits:
        raise SkippedError("takes --long-waits, and a minute")
    if subject.options.step_timeout_s < LONGEST_S:
        raise SkippedError(f"takes a learner with --step-timeout-s of {LONGEST_S:g} s or more")
    with subject.watched() as relay, subject.joined() as stream:
        stream.step()
        check_keepalive(relay)


CHECKS = (
    Check("compression of gRPC", ("C2",), refuses_what_grpc_compressed),
    Check("a message above the limit", ("C3", "C5"), refuses_what_is_too_large),
    Check("one stream too many", ("S7", "C5"), refuses_one_too_many),
    Check("no hello", ("S5", "T3"), waits_so_long_for_a_hello),
    Check("no observations", ("S5", "T4"), waits_so_long_for_observations),
    Check("keepalive", ("T5",), pings_now_and_then),
)
