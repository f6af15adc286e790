"""A peer of the learner that sends given messages one by one."""

import queue
from collections.abc import Sequence
from typing import Any, Literal

import grpc

from kubebeast_protos.v1 import actor_pool_pb2 as pb

METHOD = "/kubebeast.v1.ActorPool/Act"
CALL_TIMEOUT_S = 60.0
"""Far above every deadline of the pool: a call that ends by it was not ended by the pool."""

End = Literal["wait", "half-close", "cancel"]


def converse(
    address: str, messages: Sequence[pb.ActRequest | bytes], end: End = "wait", *, patient: bool = True
) -> tuple[grpc.StatusCode, str]:
    """Sends the messages on a stream of its own and returns the status it ended with.

    From the second on each message waits for the reply to the one before. end: the end after the last one; "wait"
    leaves it to the pool. patient: a Bye and the end wait for that reply, too.
    """
    requests: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
    with grpc.insecure_channel(address, options=[("grpc.use_local_subchannel_pool", 1)]) as channel:
        act = channel.stream_stream(METHOD, request_serializer=bytes, response_deserializer=bytes)
        call: Any = act(iter(requests.get, None), timeout=CALL_TIMEOUT_S)
        replies = iter(call)
        try:
            for index, message in enumerate(messages):
                if index and (patient or not _is_bye(message)):
                    next(replies)
                requests.put(message if isinstance(message, bytes) else message.SerializeToString())
            if end != "wait" and patient:
                next(replies)
            if end == "half-close":
                requests.put(None)
            elif end == "cancel":
                call.cancel()
            for _ in replies:
                pass
        except grpc.RpcError:
            pass
        finally:
            requests.put(None)
        return call.code(), call.details()


def _is_bye(message: pb.ActRequest | bytes) -> bool:
    return isinstance(message, pb.ActRequest) and message.HasField("bye")
