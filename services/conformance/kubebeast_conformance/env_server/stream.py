"""A stream of the env-server under test; the suite plays the learner."""

from typing import Protocol

import grpc
import numpy as np
from google.protobuf.message import DecodeError

from kubebeast_conformance.contract import answers
from kubebeast_conformance.contract.env_server_stream import EnvServerStream
from kubebeast_conformance.contract.violation import ViolationError
from kubebeast_conformance.wire.inbox import Ended, Inbox, SilentError
from kubebeast_protos.v1 import PROTOCOL_MINOR
from kubebeast_protos.v1 import actor_pool_pb2 as pb


class Call(Protocol):
    """A call in either direction."""

    @property
    def inbox(self) -> Inbox: ...

    def send(self, message: bytes) -> None: ...

    def finish(self, code: grpc.StatusCode, details: str = "") -> None:
        """Ends the stream like a learner: with a status, or with an End message if the learner has dialed."""

    def cancel(self) -> None:
        """Breaks the call."""


class PlayedStream:
    """A stream that checks all received messages. Its waits raise ViolationError after patience_s seconds."""

    def __init__(self, call: Call, patience_s: float) -> None:
        self.call = call
        self.patience_s = patience_s
        self.checker = EnvServerStream()
        self.hello = pb.Hello()
        self._values = np.random.default_rng(0)
        self._observations = pb.Observations()
        self._traced = self._with_options = False

    def introduce(self) -> pb.Hello:
        """Waits for the Hello and returns it."""
        self.hello = self.checker.open(self.call.inbox.get_due_message(self.patience_s, "H1", "no Hello"))
        return self.hello

    def welcome(self, minor: int = PROTOCOL_MINOR, *, lz4: bool = True, with_options: bool = False) -> None:
        """Sends a Welcome. with_options: it and all later Actions have options of episodes."""
        self._with_options = with_options
        message = answers.welcome(self.hello, minor, lz4=lz4, with_options=with_options)
        self.checker.welcome(minor, list(message.compression), len(message.log_info))
        self.send(pb.ActResponse(welcome=message))

    def observe(self, rule: str = "O2") -> pb.Observations:
        """Waits for the next Observations. Without any, `rule` is broken."""
        request = self.checker.check(
            self.call.inbox.get_due_message(self.patience_s, rule, "no Observations"), traced=self._traced
        )
        if request.HasField("bye"):
            raise ViolationError(rule, "", f"a Bye instead of Observations: {request.bye.detail}")
        self._observations = request.observations
        return self._observations

    def actions(self, *, traced: bool = False) -> pb.Actions:
        """Returns Actions for the newest Observations."""
        self._traced = traced
        return answers.actions(
            self.hello, self._observations, self._values, traced=traced, with_options=self._with_options
        )

    def act(self, *, traced: bool = False) -> None:
        self.send(pb.ActResponse(actions=self.actions(traced=traced)))

    def play(self, num_steps: int, rule: str = "O2") -> None:
        """Exchanges Observations and Actions; the last Observations stay unanswered. Without any, `rule` is broken."""
        self.observe(rule)
        for _ in range(num_steps):
            self.act()
            self.observe(rule)

    def send(self, response: pb.ActResponse | bytes) -> None:
        self.call.send(response if isinstance(response, bytes) else response.SerializeToString())

    def expect_silence(self, rule: str, seconds: float, because: str, *, end: str) -> None:
        """Blocks for this time. A message breaks `rule`, and the end of the stream breaks the rule `end`."""
        try:
            item = self.call.inbox.get(seconds)
        except SilentError:
            return
        if isinstance(item, Ended):
            raise ViolationError(end, "", f"the stream ended with {item} {because}")
        raise ViolationError(rule, "", f"a message {because}", item)

    def expect_end(self, rule: str, because: str, *, bye: bool = True) -> Ended:
        """Waits for the end. Observations and silence break `rule`. If bye, a Bye may precede the end."""
        while True:
            item = self.call.inbox.get_due(self.patience_s, rule, f"the stream goes on {because}")
            if isinstance(item, Ended):
                return item
            if not (bye and _is_bye(item)):
                raise ViolationError(rule, "", f"another message {because}", item)

    def expect_bye(self, rule: str) -> pb.Bye:
        """Waits for a Bye and answers earlier Observations."""
        while True:
            request = self.checker.check(
                self.call.inbox.get_due_message(self.patience_s, rule, "no Bye"), traced=self._traced
            )
            if request.HasField("bye"):
                return request.bye
            self._observations = request.observations
            self.act()


def _is_bye(message: bytes) -> bool:
    try:
        return pb.ActRequest.FromString(message).HasField("bye")
    except DecodeError:
        return False
