"""Checks of an env-server's wait for the Welcome and of its keepalive, which take a minute each."""

from kubebeast_conformance.check import Check, SkippedError
from kubebeast_conformance.env_server.subject import EnvServer
from kubebeast_conformance.keepalive import check_keepalive

WELCOME_S = 60.0


def waits_for_a_slow_welcome(subject: EnvServer) -> None:
    _require_long_waits(subject)
    if subject.is_dialed:
        raise SkippedError("the env-server listens, and may let the next learner in")
    stream = subject.fresh_stream()
    stream.expect_silence("H1", WELCOME_S, "before the Welcome", end="T1")
    stream.welcome()
    stream.observe("T1")


def pings_now_and_then(subject: EnvServer) -> None:
    _require_long_waits(subject)
    with subject.watched() as relay:
        stream = subject.fresh_stream()
        stream.welcome()
        stream.observe()
        check_keepalive(relay)


def _require_long_waits(subject: EnvServer) -> None:
    if not subject.options.long_waits:
        raise SkippedError("takes --long-waits, and a minute")


CHECKS = (
    Check("a slow welcome", ("T1",), waits_for_a_slow_welcome),
    Check("keepalive", ("T5",), pings_now_and_then),
)
