"""Dialling the learner: the channel, what its errors mean, how long to wait before the next try."""

import random

import grpc

MAX_MESSAGE_BYTES = 64 << 20
KEEPALIVE_TIME_MS = 20_000
"""More than the 10 s that the learner allows between pings."""
KEEPALIVE_TIMEOUT_MS = 10_000

FINAL_CODES = frozenset(
    {
        grpc.StatusCode.FAILED_PRECONDITION,
        grpc.StatusCode.INVALID_ARGUMENT,
        grpc.StatusCode.UNAUTHENTICATED,
        grpc.StatusCode.PERMISSION_DENIED,
        grpc.StatusCode.UNIMPLEMENTED,
    }
)
"""The learner will not take this env-server however often it dials."""


class DisconnectedError(Exception):
    """The stream ended without being asked to; dialling again may help."""


class RefusedError(Exception):
    """The learner refuses this env-server; dialling again cannot help."""


def open_channel(address: str) -> grpc.Channel:
    """A channel of its own connection: a new one resolves the learner's name anew."""
    options = [
        ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
        ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
        ("grpc.keepalive_time_ms", KEEPALIVE_TIME_MS),
        ("grpc.keepalive_timeout_ms", KEEPALIVE_TIMEOUT_MS),
        ("grpc.http2.max_pings_without_data", 0),
        ("grpc.use_local_subchannel_pool", 1),
        ("grpc.enable_http_proxy", 0 if _is_local(address) else 1),
    ]
    return grpc.insecure_channel(address, options=options)


def _is_local(address: str) -> bool:
    return address.startswith(("unix:", "127.", "localhost:", "[::1]:"))


def stream_error(error: grpc.RpcError) -> DisconnectedError | RefusedError:
    """What the end of a stream means, from its status."""
    code, details = error.code(), error.details()
    text = f"{code.name}: {details}"
    return RefusedError(text) if code in FINAL_CODES else DisconnectedError(text)


class Backoff:
    """Jittered exponential delays in seconds: drawn from the upper half of a range that doubles up to the limit."""

    def __init__(self, first_s: float = 0.25, limit_s: float = 15.0) -> None:
        self._first_s = first_s
        self._limit_s = limit_s
        self.tries = 0

    def reset(self) -> None:
        self.tries = 0

    def next_delay_s(self) -> float:
        ceiling = min(self._limit_s, self._first_s * 2.0 ** min(self.tries, 32))
        self.tries += 1
        return random.uniform(ceiling / 2, ceiling)
