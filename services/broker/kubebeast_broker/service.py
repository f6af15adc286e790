"""The calls of learners and of streams."""

import asyncio
import contextlib
import logging
from collections import Counter
from collections.abc import AsyncIterator, Coroutine
from typing import Any, TypeVar, cast

import grpc
from google.protobuf.message import DecodeError, Message

from kubebeast_broker.broker import Broker, FullError, LearnerCall, StreamCall
from kubebeast_broker.messages import MessageError, read_learner, read_stream
from kubebeast_broker.peer import host_of
from kubebeast_common.access.token_file import TokenFileError, refusal
from kubebeast_common.backoff import Repetitions
from kubebeast_protos.v1 import broker_pb2 as pb

SERVICE = "kubebeast.v1.Broker"
FIRST_MESSAGE_S = 10.0
"""Time for the first message of a call."""
PACE_S = 0.05
"""Time between two messages of a call: further ones wait in the connection, which holds their sender back."""
WRITE_S = 1.0
"""Time for a message that is being written at the end of a call."""
SHARE_INTERVAL_S = 1.0
"""Time between two messages to a learner."""

Context = grpc.aio.ServicerContext[bytes, bytes]
MessageT = TypeVar("MessageT", pb.LearnerState, pb.StreamState)

logger = logging.getLogger(__name__)


class Service:
    """Handlers of the calls, for the event loop of the broker."""

    def __init__(self, broker: Broker, token_file: str) -> None:
        self.num_refused: Counter[str] = Counter()
        """Calls that were refused, by the name of their status."""
        self._broker = broker
        self._token_file = token_file
        self._refusals = Repetitions()
        self._is_closing = False

    def handler(self) -> "grpc.GenericRpcHandler[Any, Any]":
        """Returns the handler of both calls, without parsers: garbage is an offense like others."""
        methods = {"Register": self.register, "Assign": self.assign}
        handlers = {name: grpc.stream_stream_rpc_method_handler(cast(Any, each)) for name, each in methods.items()}
        return grpc.method_handlers_generic_handler(SERVICE, handlers)

    async def register(self, requests: AsyncIterator[bytes], context: Context) -> None:
        """Handles Broker.Register."""
        await self._admit(context)
        async with self._refusing(context), asyncio.timeout(FIRST_MESSAGE_S) as limit, _Answers(context) as answers:
            call: LearnerCall | None = None
            is_planned = False
            try:
                async for state in _messages(requests, pb.LearnerState):
                    name, claim = read_learner(state, host_of(context.peer()))
                    if call is None:
                        call = self._broker.register_learner(name, claim, lambda: limit.reschedule(0.0))
                        limit.reschedule(None)
                        answers.begin(_send_shares(call, answers))
                    _require_same(call.name, name)
                    is_planned = state.has_ended
                    if is_planned:
                        break
                    self._broker.update_learner(call, claim)
            finally:
                if call is not None:
                    self._broker.end_learner(call, is_planned=is_planned)

    async def assign(self, requests: AsyncIterator[bytes], context: Context) -> None:
        """Handles Broker.Assign."""
        await self._admit(context)
        async with self._refusing(context), asyncio.timeout(FIRST_MESSAGE_S) as limit, _Answers(context) as answers:
            call: StreamCall | None = None
            try:
                async for state in _messages(requests, pb.StreamState):
                    name = read_stream(state)
                    if call is None:
                        call = self._broker.register_stream(name, lambda: limit.reschedule(0.0))
                        limit.reschedule(None)
                        answers.begin(_send_learners(call, answers))
                    _require_same(call.name, name)
                    self._broker.update_stream(call, state.playing, state.refused_by)
            finally:
                if call is not None:
                    self._broker.end_stream(call)

    def close(self) -> None:
        """Ends all calls; their clients dial again."""
        self._is_closing = True
        self._broker.close()

    async def _admit(self, context: Context) -> None:
        """Aborts a call without a token that is needed."""
        try:
            reason = await asyncio.to_thread(refusal, self._token_file, context.invocation_metadata() or ())
        except TokenFileError as error:
            logger.error("%s", error)
            await self._refuse(context, grpc.StatusCode.UNAVAILABLE, "the broker cannot read its token file")
        if reason is not None:
            await self._refuse(context, grpc.StatusCode.UNAUTHENTICATED, reason)

    @contextlib.asynccontextmanager
    async def _refusing(self, context: Context) -> AsyncIterator[None]:
        """Aborts the call for an offense, a limit of the broker, or a call that takes its place."""
        try:
            yield
        except MessageError as error:
            await self._refuse(context, grpc.StatusCode.INVALID_ARGUMENT, str(error))
        except FullError as error:
            await self._refuse(context, grpc.StatusCode.RESOURCE_EXHAUSTED, str(error))
        except TimeoutError:
            if self._is_closing:
                await context.abort(grpc.StatusCode.UNAVAILABLE, "the broker is shutting down")
            reason = f"no message within {FIRST_MESSAGE_S:g} s, or another call has taken the place of this one"
            await self._refuse(context, grpc.StatusCode.ABORTED, reason)

    async def _refuse(self, context: Context, code: grpc.StatusCode, reason: str) -> None:
        self.num_refused[code.name.lower()] += 1
        if self._refusals.is_news(reason):
            logger.warning("refused a call from %s: %s", context.peer(), reason)
        await context.abort(code, reason)


class _Answers:
    """The task that writes the answers of a call, and ends with it."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._task: asyncio.Task[None] | None = None
        self._write: asyncio.Future[None] | None = None

    def begin(self, answering: Coroutine[None, None, None]) -> None:
        self._task = asyncio.create_task(answering)
        self._task.add_done_callback(_take_error)

    async def send(self, message: Message) -> None:
        self._write = asyncio.ensure_future(self._context.write(message.SerializeToString()))
        self._write.add_done_callback(_take_error)
        await asyncio.shield(self._write)

    async def __aenter__(self) -> "_Answers":
        return self

    async def __aexit__(self, *error: object) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        if self._write is not None:  # gRPC sends no status beside a message
            await asyncio.wait([self._write], timeout=WRITE_S)


def _take_error(task: "asyncio.Future[None]") -> None:
    """Keeps asyncio from logging the error of a connection that broke, which ends the call as well."""
    if not task.cancelled():
        task.exception()


async def _messages(requests: AsyncIterator[bytes], kind: type[MessageT]) -> AsyncIterator[MessageT]:
    """Yields messages until the client ends its side. Raises MessageError for bytes that are none."""
    async for request in requests:
        try:
            yield kind.FromString(request)
        except DecodeError as error:
            raise MessageError(f"{kind.__name__}: malformed, or compressed by gRPC") from error
        await asyncio.sleep(PACE_S)


async def _send_shares(call: LearnerCall, answers: _Answers) -> None:
    before: int | None = None
    while True:
        streams = await call.shares.take()
        if streams != before:
            await answers.send(pb.LearnerShare(streams=streams))
            before = streams
            await asyncio.sleep(SHARE_INTERVAL_S)


async def _send_learners(call: StreamCall, answers: _Answers) -> None:
    while True:
        name = await call.learners.take()
        given = {} if name is None else {"learner_id": name.instance_id, "run_id": name.run_id, "address": name.address}
        await answers.send(pb.Assignment(**given))


def _require_same(first: object, name: object) -> None:
    """Raises MessageError unless the fixed fields of a message are those of the first one."""
    if name != first:
        raise MessageError(f"{name}: was {first} in the first message")
