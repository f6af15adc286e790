"""An env-server in one file, written from docs/protocol.md: four games of Catch for a learner, with grpcio only.

kubebeast learner
python examples/plain_env_server.py 127.0.0.1:4431
"""

import contextlib
import itertools
import math
import queue
import random
import signal
import struct
import sys
import threading
import time
import uuid
from collections.abc import Iterator

import grpc

from kubebeast_protos.v1 import actor_pool_pb2 as pb

NUM_ENVS = 4
ROWS, COLUMNS = 10, 5
FINAL = ("INVALID_ARGUMENT", "FAILED_PRECONDITION", "UNAUTHENTICATED", "PERMISSION_DENIED", "UNIMPLEMENTED")
OPTIONS = [
    ("grpc.use_local_subchannel_pool", 1),  # a new connection for each channel
    ("grpc.max_receive_message_length", 64 << 20),
    ("grpc.keepalive_time_ms", 20_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.http2.ping_timeout_ms", 10_000),  # newer gRPC waits so long for a keepalive's answer, too; default 60 s
    ("grpc.http2.max_pings_without_data", 0),
]
WELCOME_TIMEOUT_S, END_TIMEOUT_S = 300.0, 2.0
STEADY_S, LONGEST_WAIT_S = 5.0, 8.0
Inbox = queue.SimpleQueue[pb.ActResponse | None]
"""Responses of the learner; None marks the end of the stream."""


class Catch:
    """Game of a falling ball, with a paddle in the last row to catch it. Actions: 0 left, 1 stay, 2 right."""

    def __init__(self) -> None:
        self.is_over = True

    def step(self, action: int) -> tuple[bytes, float, bool, bool]:
        """Returns a row: observation, reward, terminated, is_first. If the game is over, the action only resets it."""
        is_first, reward = self.is_over, 0.0
        if is_first:
            self.ball, self.column, self.paddle = 0, random.randrange(COLUMNS), COLUMNS // 2
        else:
            self.paddle = min(max(self.paddle + action - 1, 0), COLUMNS - 1)
            self.ball += 1
        self.is_over = self.ball == ROWS - 1
        if self.is_over:
            reward = 1.0 if self.column == self.paddle else -1.0
        board = [0.0] * (ROWS * COLUMNS)
        board[self.ball * COLUMNS + self.column] = board[(ROWS - 1) * COLUMNS + self.paddle] = 1.0
        return struct.pack(f"<{len(board)}f", *board), reward, self.is_over, is_first


class LearnerError(Exception):
    """Raised if the learner breaks a rule or ends the stream."""


def hello(instance_id: str) -> pb.ActRequest:
    message = pb.Hello(
        protocol_version=1,
        env_server_id="plain",
        instance_id=instance_id,
        env_id="Catch-v0",
        num_envs=NUM_ENVS,
    )
    message.observation.add(dtype=pb.DTYPE_FLOAT32, shape=[ROWS, COLUMNS])
    message.action.add(dtype=pb.DTYPE_INT64, num_categories=3)
    return pb.ActRequest(hello=message)


def observations(step: int, games: list[Catch], actions: tuple[int, ...]) -> pb.ActRequest:
    """Steps every game and returns the message with their next rows."""
    boards, rewards, terminated, is_first = zip(
        *(game.step(a) for game, a in zip(games, actions, strict=True)), strict=True
    )
    message = pb.Observations(
        step=step,
        leaves=[b"".join(boards)],
        rewards=struct.pack(f"<{NUM_ENVS}f", *rewards),
        terminated=bytes(terminated),
        truncated=bytes(NUM_ENVS),
        is_first=bytes(is_first),
    )
    for env in range(NUM_ENVS):
        if terminated[env]:
            message.episodes.add(env=env, episode_return=rewards[env], length=ROWS - 1)
    return pb.ActRequest(observations=message)


def checked_welcome(response: pb.ActResponse) -> None:
    if not response.HasField("welcome") or list(response.welcome.compression) not in ([], [0], [1]):
        raise LearnerError("no Welcome, or one with a compression that was not offered")
    if response.welcome.protocol_version != 1:
        sys.exit(f"the learner has version {response.welcome.protocol_version} of the protocol")


def checked_actions(response: pb.ActResponse, step: int) -> tuple[int, ...]:
    leaves = response.actions.leaves
    if not response.HasField("actions") or response.actions.step != step or [*map(len, leaves)] != [8 * NUM_ENVS]:
        raise LearnerError(f"no Actions of step {step}")
    actions = struct.unpack(f"<{NUM_ENVS}q", leaves[0])
    if not all(0 <= action < 3 for action in actions):
        raise LearnerError(f"no such actions: {actions}")
    return actions


def play(address: str, instance_id: str) -> str:
    """Plays one stream and returns the name of its final status. On SystemExit it sends a Bye first."""
    requests: queue.SimpleQueue[pb.ActRequest | None] = queue.SimpleQueue()
    inbox: Inbox = queue.SimpleQueue()
    with grpc.insecure_channel(address, OPTIONS) as channel:
        act = channel.stream_stream(
            "/kubebeast.v1.ActorPool/Act", pb.ActRequest.SerializeToString, pb.ActResponse.FromString
        )
        call = act(iter(requests.get, None))
        threading.Thread(target=read, args=(call, inbox), daemon=True).start()
        try:
            talk(requests, inbox, instance_id)
        except (LearnerError, queue.Empty) as error:
            print(f"the stream ends: {error}", file=sys.stderr)
        except SystemExit:
            requests.put(pb.ActRequest(bye=pb.Bye(reason=pb.Bye.REASON_SHUTDOWN)))
            requests.put(None)
            drain(inbox)
            raise
        finally:
            requests.put(None)
            call.cancel()  # type: ignore[no-untyped-call] # no effect if the learner has ended it
        return call.code().name


def talk(requests: "queue.SimpleQueue[pb.ActRequest | None]", inbox: Inbox, instance_id: str) -> None:
    """Plays until the learner ends the stream or breaks a rule; raises LearnerError, or queue.Empty without Welcome."""
    requests.put(hello(instance_id))
    checked_welcome(received(inbox, WELCOME_TIMEOUT_S))
    games, actions = [Catch() for _ in range(NUM_ENVS)], (0,) * NUM_ENVS
    for step in itertools.count():
        requests.put(observations(step, games, actions))
        actions = checked_actions(received(inbox, math.inf), step)


def received(inbox: Inbox, timeout_s: float) -> pb.ActResponse:
    """Returns the next response. It waits in steps of 1 s: Python handles a signal just before a wait after the wait.

    Raises:
        queue.Empty: After `timeout_s`.
        LearnerError: If the stream has ended.
    """
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            response = inbox.get(timeout=1.0)
        except queue.Empty:
            if time.monotonic() >= deadline:
                raise
            continue
        if response is None:
            raise LearnerError("the learner has ended it")
        return response


def read(call: Iterator[pb.ActResponse], inbox: Inbox) -> None:
    try:
        for response in call:
            inbox.put(response)
    except grpc.RpcError as error:
        print(f"{error.code().name}: {error.details()}", file=sys.stderr)
    inbox.put(None)


def drain(inbox: Inbox) -> None:
    """Waits until the learner has ended the stream, so that the Bye arrives; at most END_TIMEOUT_S per response."""
    with contextlib.suppress(queue.Empty):
        while inbox.get(timeout=END_TIMEOUT_S) is not None:
            pass


def main(address: str) -> int:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # interrupts any wait of the main thread
    instance_id, tries = str(uuid.uuid4()), 0
    while True:
        began = time.monotonic()
        if play(address, instance_id) in FINAL:
            return 3
        tries = 0 if time.monotonic() - began > STEADY_S else tries + 1
        ceiling = min(LONGEST_WAIT_S, 0.25 * 2 ** min(tries, 16))
        time.sleep(random.uniform(ceiling / 2, ceiling))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
