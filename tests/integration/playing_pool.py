"""The native actor pool as a learner that plays while its test waits, and env-servers to play with."""

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

import kubebeast_native as native
from kubebeast_envserver.stream.exit_code import ExitCode
from kubebeast_protos.v1 import actor_pool_pb2 as pb
from tests.integration.envserver_learner import TIMEOUT_S, StreamThread, next_log, watched_log

NUM_ACTIONS = 6
MOCK = native.EnvSpec(
    "Mock",
    observation=[native.LeafSpec("", "uint8", (84, 84), frame_stack=4)],
    action=[native.LeafSpec("", "int64", (), num_categories=NUM_ACTIONS)],
)
WELL_SPEC = native.EnvSpec(
    "Well-v0",
    observation=[native.LeafSpec("", "float32", (2,))],
    action=[native.LeafSpec("", "int64", (), num_categories=2)],
)
"""Spec of the environments of envserver_faults."""
_LOOK_MS = 20


def env_spec(env_id: str, observation: Iterable[pb.LeafSpec], action: Iterable[pb.LeafSpec]) -> native.EnvSpec:
    """Returns the spec of these leaves of a Hello."""

    def leaf_spec(leaf: pb.LeafSpec) -> native.LeafSpec:
        dtype = pb.DType.Name(leaf.dtype).removeprefix("DTYPE_").lower()
        return native.LeafSpec(leaf.path, dtype, leaf.shape, max(leaf.frame_stack, 1), leaf.num_categories)

    return native.EnvSpec(env_id, [*map(leaf_spec, observation)], [*map(leaf_spec, action)])


class PlayingPool:
    """Runs between enter and exit, for one thread and streams of one kind; listens unless `address` is empty.

    Only the methods that play answer streams. They raise the exceptions of native calls.
    """

    def __init__(self, spec: native.EnvSpec = MOCK, /, *, address: str = "127.0.0.1:0", **options: Any) -> None:
        """spec: spec of every stream. options: further ones of native.ActorPool. PEM files are checked every second."""
        self.native = native.ActorPool(
            address=address, run_id="playing", unroll_length=4, batch_size=1, expected=spec, tls_refresh_s=1, **options
        )
        self._actions = spec.action
        self.events: list[native.StreamEvent] = []
        """All events while it played."""

    def __enter__(self) -> Self:
        self.native.start()
        self.native.open(num_logits=NUM_ACTIONS, core_state_size=0)
        return self

    def __exit__(self, *error: object) -> None:
        self.native.close()

    @property
    def address(self) -> str:
        return self.native.address

    def stat(self, name: str) -> int:
        return self.native.stats()[name]

    def env_server(self, **options: object) -> StreamThread:
        """Starts an env-server of Mock that dials the pool."""
        return StreamThread(env="Mock", envs_per_stream=1, address=self.address, **options)

    def play_until(self, condition: Callable[[], bool]) -> None:
        """Answers every stream until the condition holds; raises AssertionError if it stays false."""
        deadline = time.monotonic() + TIMEOUT_S
        while not condition():
            assert time.monotonic() < deadline, f"the condition stays false: {self.native.stats()}"
            if batch := self.native.next_inference(_LOOK_MS):
                self._answer(batch, [np.zeros((batch.num_rows, *leaf.shape), leaf.dtype) for leaf in self._actions])
            self.native.next_rollouts(timeout_ms=0)
            self.events += self.native.take_stream_events()

    def unrolls(self, policy: Callable[[native.InferenceBatch], NDArray[np.int64]]) -> Iterator[native.RolloutBatch]:
        """Answers every stream by policy(batch), int64 [N], and yields the resulting unrolls, each of one environment.

        It plays while the caller waits for the next one; raises AssertionError if that does not come.
        """
        deadline = time.monotonic() + TIMEOUT_S
        while True:
            assert time.monotonic() < deadline, f"no unroll comes: {self.native.stats()}"
            if batch := self.native.next_inference(_LOOK_MS):
                self._answer(batch, [policy(batch)])
            while unroll := self.native.next_rollouts(timeout_ms=0):
                yield unroll
                deadline = time.monotonic() + TIMEOUT_S

    def play_with(self, stream: StreamThread) -> None:
        """Plays until the env-server has made several more steps."""
        steps = stream.status.env_steps
        self.play_until(lambda: stream.status.env_steps >= steps + 5)

    def wait_for_event(self, kind: str) -> native.StreamEvent:
        """Plays until there was an event of that kind; returns the newest one."""
        self.play_until(lambda: any(event.kind == kind for event in self.events))
        return [event for event in self.events if event.kind == kind][-1]

    def verdict_on(self, stream: StreamThread) -> ExitCode | None:
        """Plays until the env-server has ended; returns its exit status."""
        self.play_until(lambda: stream.exit_code is not None)
        return stream.exit_code

    def _answer(self, batch: native.InferenceBatch, actions: Sequence[NDArray[np.generic]]) -> None:
        logits = np.zeros((batch.num_rows, NUM_ACTIONS), np.float32)
        batch.reply(actions, logits, np.zeros(batch.num_rows, np.float32), policy_version=0)


@contextlib.contextmanager
def listening(**options: object) -> Iterator[StreamThread]:
    """Yields an env-server, once it listens at `options["listen"]`."""
    with watched_log() as log, StreamThread(env="Mock", envs_per_stream=1, **options) as stream:
        next_log(log, "listening on")
        yield stream


def undisturbed(stream: StreamThread) -> bool:
    """Returns True if the env-server has had one stream since it started, and still has it."""
    status = stream.status
    return (status.connects_welcomed, status.connects_lost, status.connected) == (1, 0, 1)
