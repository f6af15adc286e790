"""An env-server that breaks one rule of the contract: `python -m tests.contract.faulty_env_server FAULT ADDRESS`.

FAULT is the rule, or the rule and the broken part of it.

Two environments, each with a position from 0 to 4 that advances by one per step, for any action; every third episode of
environment 1 breaks.
"""

import queue
import signal
import sys
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import grpc
import lz4.block
import numpy as np

from kubebeast_common.backoff import Backoff
from kubebeast_protos.v1 import PROTOCOL_MINOR, PROTOCOL_VERSION
from kubebeast_protos.v1 import actor_pool_pb2 as pb

NUM_ENVS, LAST_PLACE, STACK = 2, 4, 2
FINAL_CODES = (
    *(grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.FAILED_PRECONDITION, grpc.StatusCode.UNAUTHENTICATED),
    *(grpc.StatusCode.PERMISSION_DENIED, grpc.StatusCode.UNIMPLEMENTED),
)
NAN = float("nan")
RUN = "faulty"
KEEPALIVES = {"T5": (2_000, 10_000), "T5 late": (10_000, 60_000)}
"""Milliseconds between pings, and until their answer; by default the good choice."""


def set_to(name: str, value: Any) -> Callable[[Any], None]:
    return lambda message: setattr(message, name, value)


def other_leaf(hello: pb.Hello, **fields: Any) -> None:
    hello.observation.add(**{"dtype": pb.DTYPE_UINT8, "path": "other", **fields})


def broken_leaf(index: int, data: bytes) -> Callable[[pb.Observations], None]:
    return lambda message: message.leaves.__setitem__(index, data)


def whole_stacks(message: pb.Observations) -> None:
    message.leaves[0] = lz4.block.compress(bytes(NUM_ENVS * STACK * 4), store_size=False)


def dirty_gap(message: pb.Observations) -> None:
    if any(message.interrupted):
        message.leaves[1] = np.ones(NUM_ENVS, "<f4").tobytes()


def no_firsts(message: pb.Observations) -> None:
    message.is_first = bytes([message.step == 0]) * NUM_ENVS


def rewarded_first(message: pb.Observations) -> None:
    if any(message.is_first):
        message.rewards = np.ones(NUM_ENVS, "<f4").tobytes()


HELLOS: dict[str, Callable[[pb.Hello], object]] = {
    "H2": set_to("protocol_version", 2),
    "H3": set_to("env_server_id", ""),
    "H4": set_to("num_envs", 0),
    "H5": lambda hello: other_leaf(hello, path="image"),
    "H6": lambda hello: setattr(hello.action[0], "frame_stack", 2),
    "H7": lambda hello: other_leaf(hello, role=pb.ROLE_ACTION_MASK),
    "H8": lambda hello: hello.offered_compression.extend([pb.COMPRESSION_NONE] * 9),
    "H9": set_to("env_config", '{"preset": "none"}'),
    "H13": set_to("run", "r" * 254),
    "H14": set_to("takes_turns", True),
    "H12": lambda hello: hello.observation[3].shape.__setitem__(0, 2),
}
"""The fault in the pb.Hello, by rule."""

MESSAGES: dict[str, Callable[[pb.Observations], object]] = {
    "O1": lambda message: setattr(message, "step", max(message.step - 1, 0)),
    "O3": lambda message: message.leaves.pop(),
    "O4": whole_stacks,
    "O5": broken_leaf(1, np.array([0, NAN], "<f4").tobytes()),
    "O6": broken_leaf(2, b"\0\5"),
    "O7": broken_leaf(3, bytes(3 * NUM_ENVS)),
    "O8": set_to("rewards", np.array([0, np.inf], "<f4").tobytes()),
    "O9": set_to("truncated", b"\0\2"),
    "O10": lambda message: message.episodes.add(env=NUM_ENVS),
    "O11": set_to("env_us", 5),
    "R1": no_firsts,
    "R2": rewarded_first,
    "R3": dirty_gap,
}
"""The fault in pb.Observations, by rule."""


class Stopped(Exception):  # noqa: N818
    """Raised by SIGTERM."""


class FaultyEnvServer:
    """An env-server that dials until it is stopped."""

    def __init__(self, fault: str, address: str) -> None:
        self._fault = fault
        self._address = address
        self._instance_id = str(uuid.uuid4())
        self._stopping = threading.Event()
        self._backoff = Backoff(0.25, 2.0)
        self._num_streams = 0
        self._step = 0

    def run(self) -> None:
        signal.signal(signal.SIGTERM, lambda *_: self._stopping.set())
        while not self._stopping.is_set():
            code = self._play()
            is_final = code in FINAL_CODES and self._fault != "E5"
            if is_final or (self._fault == "E4" and code is grpc.StatusCode.RESOURCE_EXHAUSTED):
                return
            self._stopping.wait(self._delay_s())

    def _delay_s(self) -> float:
        number = self._num_streams - 1
        match self._fault:
            case "E6":
                return 0.0
            case "E6 shrinking":
                return max(1.6 / 2.0**number, 0.2)
            case "E6 alike":
                # Long, so that the delays of a busy machine do not count as differences between the processes.
                return min(0.8 * 2.0**number, 5.0)
        return self._backoff.next_delay_s()

    def _play(self) -> grpc.StatusCode | None:
        """Plays one stream. Returns its status; None if the env-server ended it."""
        self._num_streams += 1
        self._step = self._step if self._fault == "E3" else 0
        requests: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        compression = grpc.Compression.Gzip if self._fault == "C2" else None
        ping_ms, answer_ms = KEEPALIVES.get(self._fault, (20_000, 10_000))
        options = [
            ("grpc.use_local_subchannel_pool", 1),
            ("grpc.keepalive_time_ms", ping_ms),
            ("grpc.keepalive_timeout_ms", answer_ms),
            ("grpc.http2.ping_timeout_ms", answer_ms),
            ("grpc.http2.max_pings_without_data", 0),
        ]
        with grpc.insecure_channel(self._address, options) as channel:
            act = channel.stream_stream("/kubebeast.v1.ActorPool/Act", None, None)
            call: Any = act(iter(requests.get, None), compression=compression)
            replies: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
            reader = threading.Thread(target=_read, args=(call, replies), daemon=True)
            reader.start()
            try:
                self._talk(requests, replies)
            except Stopped:
                if self._fault != "E2":
                    bye = pb.ActRequest(bye=pb.Bye(reason=pb.Bye.REASON_SHUTDOWN)).SerializeToString()
                    requests.put(bye)
                    if self._fault == "E1":
                        requests.put(bye)
                    requests.put(None)
                    reader.join()
                return None
            except ValueError:  # of the learner's messages
                call.cancel()
                return None
            except EOFError:
                code: grpc.StatusCode = call.code()
                return code
            finally:
                requests.put(None)
        return None

    def _talk(self, requests: "queue.SimpleQueue[bytes | None]", replies: "queue.SimpleQueue[bytes | None]") -> None:
        requests.put(pb.ActRequest(hello=self._hello()).SerializeToString())
        if self._fault == "H1":
            requests.put(pb.ActRequest(observations=self._rows(PROTOCOL_MINOR, False, True)).SerializeToString())
        welcome = self._response(replies, 1.0 if self._fault == "T1" else None).welcome
        fits = welcome.protocol_version == PROTOCOL_VERSION and len(welcome.compression) == 4
        if self._fault != "W5" and (not fits or pb.COMPRESSION_LZ4 in welcome.compression[1:]):
            raise ValueError
        if self._fault != "W5 options" and not self._are_options(welcome.episode_options):
            raise ValueError
        if self._fault != "W5 run" and welcome.run_id != RUN:
            raise ValueError
        traced = False
        while True:
            is_lz4 = pb.COMPRESSION_LZ4 in welcome.compression
            rows = self._rows(welcome.protocol_minor, traced, is_lz4)
            requests.put(pb.ActRequest(observations=rows).SerializeToString())
            if self._fault != "O2" or self._step % 5:
                actions = self._response(replies, 0.5 if self._fault == "T2" else None).actions
                if self._fault != "A6" and not self._are_legal(actions):
                    raise ValueError
                traced = actions.traced
            self._step += 1

    def _response(self, replies: "queue.SimpleQueue[bytes | None]", timeout_s: float | None = None) -> pb.ActResponse:
        waited_s = 0.0
        while timeout_s is None or waited_s < timeout_s:
            if self._stopping.is_set():
                raise Stopped
            try:
                reply = replies.get(timeout=0.05)
            except queue.Empty:
                waited_s += 0.05
                continue
            if reply is None:
                raise EOFError
            if self._fault == "V1" and b"new" in reply:
                raise ValueError
            try:
                return pb.ActResponse.FromString(reply)
            except Exception as error:
                if self._fault == "A6":
                    return pb.ActResponse()
                raise ValueError from error
        raise ValueError

    def _are_legal(self, actions: pb.Actions) -> bool:
        if not self._are_options(actions.episode_options) or (self._fault == "W8" and actions.episode_options):
            return False
        if actions.step != self._step or len(actions.leaves) != 1 or len(actions.leaves[0]) != 8 * NUM_ENVS:
            return False
        return set(np.frombuffer(actions.leaves[0], "<i8")) <= {0, 1, 2}

    def _are_options(self, entries: Iterable[pb.EpisodeOptions]) -> bool:
        return all(entry.env < NUM_ENVS and entry.options.startswith("{") for entry in entries)

    def _hello(self) -> pb.Hello:
        is_again = self._num_streams > 1
        hello = pb.Hello(
            protocol_version=PROTOCOL_VERSION,
            protocol_minor=PROTOCOL_MINOR,
            env_server_id="faulty",
            instance_id=str(uuid.uuid4()) if self._fault == "H10" else self._instance_id,
            env_id="Other-v0" if self._fault == "H11" and is_again else "Faulty-v0",
            num_envs=NUM_ENVS,
            observation=[
                pb.LeafSpec(path="image", dtype=pb.DTYPE_UINT8, shape=[4], frame_stack=STACK),
                pb.LeafSpec(path="place", dtype=pb.DTYPE_FLOAT32),
                pb.LeafSpec(path="room", dtype=pb.DTYPE_UINT8, num_categories=5),
                pb.LeafSpec(path="mask", dtype=pb.DTYPE_BOOL, shape=[3], role=pb.ROLE_ACTION_MASK),
            ],
            action=[pb.LeafSpec(dtype=pb.DTYPE_INT64, num_categories=3)],
            offered_compression=[pb.COMPRESSION_LZ4],
            run=RUN,
            env_config='{"kwargs":{"text":"' + "x" * 4000 + '"},"preset":"none"}',
        )
        HELLOS.get(self._fault, bool)(hello)
        return hello

    def _rows(self, minor: int, traced: bool, is_lz4: bool) -> pb.Observations:
        place = self._step % (LAST_PLACE + 1)
        is_gap = place == LAST_PLACE and self._step // (LAST_PLACE + 1) % 3 == 2 and (minor >= 1 or self._fault == "V2")
        is_first, is_last = place == 0, place == LAST_PLACE
        image = bytes([place]) * 4 * (STACK if is_first else 1) * NUM_ENVS
        image = image[: len(image) // 2] + bytes(len(image) // 2) if is_gap else image
        message = pb.Observations(
            step=self._step,
            leaves=[
                lz4.block.compress(image, store_size=False) if is_lz4 else image,
                np.array([place, 0 if is_gap else place], "<f4").tobytes(),
                bytes([place, 0 if is_gap else place]),
                b"\1\1\1" + (bytes(3) if is_gap else b"\1\1\1"),
            ],
            rewards=np.array([is_last, is_last and not is_gap], "<f4").tobytes(),
            terminated=bytes([is_last, is_last and not is_gap]),
            truncated=bytes([False, is_gap]),
            is_first=bytes([is_first] * NUM_ENVS),
            interrupted=bytes([False, is_gap]) if is_gap else b"",
            env_us=10 if traced else 0,
        )
        if is_last:
            message.episodes.add(env=0, episode_return=1.0, length=LAST_PLACE)
        MESSAGES.get(self._fault, bool)(message)
        return message


def _read(call: Iterator[bytes], replies: "queue.SimpleQueue[bytes | None]") -> None:
    try:
        for reply in call:
            replies.put(reply)
    except grpc.RpcError:
        pass
    replies.put(None)


if __name__ == "__main__":
    FaultyEnvServer(*sys.argv[1:]).run()
