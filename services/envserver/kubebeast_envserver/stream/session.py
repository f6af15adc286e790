"""One stream: the handshake, then observations out and actions in until either side ends it."""

import contextlib
import logging
import math
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import grpc

from kubebeast_common import log
from kubebeast_common.spec.limits import MAX_RUN_BYTES
from kubebeast_common.text import printable
from kubebeast_envserver.rows.episodes import InfoNumbers
from kubebeast_envserver.rows.rows import EnvironmentFailure, HostedEnv, OptionsError, StepRows
from kubebeast_envserver.rows.stream_status import StreamStatus
from kubebeast_envserver.stream.codec import (
    ActionLayout,
    ProtocolError,
    VersionError,
    check_welcome,
    decode_actions,
    decode_options,
    encode_observations,
    leaf_spec,
    make_bye,
    offer_compression,
)
from kubebeast_envserver.stream.connection import DisconnectedError, RefusedError, Stream, end_error, parse_response
from kubebeast_protos.v1 import ABSENT_MINOR, INFO_MINOR, PROTOCOL_MINOR, PROTOCOL_VERSION, WAITING_MINOR
from kubebeast_protos.v1 import actor_pool_pb2 as pb

DRAIN_TIMEOUT_S = 2.0
SILENT_S = 2.0
"""Time without an answer after which a stream that is to leave does not wait for the end of its episodes."""
LEAVE_WITHIN_S = 60.0
"""Maximum seconds that a stream that is to leave waits for the episodes of all its environments to end at once."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class Identity:
    """Identity of the stream in its Hello."""

    env_server_id: str
    instance_id: str
    env_id: str
    env_config: str = ""
    run: str = ""


class Session:
    """Session on one open stream. `run` is for one thread; `shut_down` is for any thread, or a signal handler."""

    def __init__(
        self,
        stream: Stream,
        env: HostedEnv,
        identity: Identity,
        *,
        lz4: bool,
        welcome_timeout_s: float,
        max_steps: int = 0,
        status: StreamStatus | None = None,
    ) -> None:
        """If `max_steps` is above 0, the session sends a Bye after so many steps."""
        self._stream = stream
        self._env = env
        self._identity = identity
        self._action_layouts = [ActionLayout.of(leaf, env.num_envs) for leaf in env.spec_action]
        self._offered = [offer_compression(leaf, lz4) for leaf in env.spec_observation]
        self._welcome_timeout_s = welcome_timeout_s
        self._max_steps = max_steps
        self._status = status or StreamStatus()
        self._action_wait_seconds = self._status.action_wait_seconds
        self._ending = False
        self._computing = False
        self._shutdown_requested = False
        self._is_over = threading.Event()
        self._waits_since: float | None = None
        """Time since which the learner owes a message; None if it owes none."""
        self._leave_by: float | None = None
        self.has_left = False
        """True if `leave` has ended the session."""
        self.on_welcome: Callable[[], None] | None = None
        """Called after the learner's Welcome."""
        self._learner_minor = 0
        self._welcomed_at: float | None = None

    @property
    def played_s(self) -> float | None:
        """Seconds since the learner's Welcome; None before it."""
        return None if self._welcomed_at is None else time.monotonic() - self._welcomed_at

    def run(self) -> None:
        """Resets the environments and steps them until `shut_down`, `leave` or max_steps, then returns.

        Raises DisconnectedError, RefusedError, ProtocolError, or, after a Bye to the learner, EnvironmentFailure.
        """
        try:
            self._shake_hands_and_play()
        except EnvironmentFailure as failure:
            knows = self._learner_minor >= 1
            reason = pb.Bye.REASON_ENVIRONMENT_FAILED if knows else pb.Bye.REASON_UNSPECIFIED
            self._end(make_bye(reason, str(failure)))
            self._drain()
            raise
        except (DisconnectedError, RefusedError):
            if not self._ending:
                raise
        finally:
            self._is_over.set()
            if self._welcomed_at is not None:
                self._status.connected = 0
                self._status.connects_lost += not self._ending

    def shut_down(self) -> None:
        """Sends a Bye and half-closes; `run` returns once the learner has ended the stream.

        While the environments compute, the Bye waits for their rows; a second call does not wait. Reentrant.
        """
        is_second, self._shutdown_requested = self._shutdown_requested, True
        if is_second or not self._computing:
            self._end(make_bye(pb.Bye.REASON_SHUTDOWN))

    def leave(self) -> None:
        """Sends a Bye after a step that ends the episodes of all environments, after LEAVE_WITHIN_S, or if the learner
        does not answer for SILENT_S. From any thread.

        `run` returns once the learner has ended the stream, or cancels the stream if it does not.
        """
        self._leave_by = time.monotonic() + LEAVE_WITHIN_S
        threading.Thread(target=self._leave_silent_learner, args=(self._leave_by,), name="leaving", daemon=True).start()

    def _leave_silent_learner(self, leave_by: float) -> None:
        """Leaves a learner that is dead, has finished or holds the stream back, as long as it does not answer."""
        while not self._is_over.wait(SILENT_S / 4) and time.monotonic() < leave_by + LEAVE_WITHIN_S:
            waits_since = self._waits_since
            if waits_since is not None and time.monotonic() - waits_since >= SILENT_S and not self._ending:
                self.has_left = True
                self._end(make_bye(pb.Bye.REASON_SHUTDOWN))
                if not self._is_over.wait(DRAIN_TIMEOUT_S):
                    self._stream.cancel()
                return

    def _end(self, bye: pb.ActRequest) -> None:
        if not self._ending:
            self._ending = True
            self._stream.send(bye.SerializeToString(), is_last=True)

    def _shake_hands_and_play(self) -> None:
        self._send(pb.ActRequest(hello=self._hello()))
        welcome = self._receive_welcome()
        if welcome is not None and not self._ending:
            try:
                compression = check_welcome(welcome, self._offered)
            except VersionError as error:
                raise RefusedError(str(error)) from error
            if self._identity.run not in ("", welcome.run_id):  # the learner does not check Hello.run
                learner_run, own_run = printable(welcome.run_id, MAX_RUN_BYTES), self._identity.run
                raise RefusedError(f"the learner trains the run {learner_run!r}, this env-server serves {own_run!r}")
            self._learner_minor = welcome.protocol_minor
            self._require_rows("absent", ABSENT_MINOR, self._env.num_agents > 1)
            self._require_rows("waiting", WAITING_MINOR, self._env.takes_turns)
            self._take_options(welcome.episode_options)
            self._welcomed_at = time.monotonic()
            self._status.connects_welcomed += 1
            self._status.connected = 1
            if self.on_welcome is not None:
                self.on_welcome()
            run_id = printable(welcome.run_id, MAX_RUN_BYTES)
            self._status.run_id = run_id
            log.note(run_id=run_id)
            logger.info("joined run %s with %d x %s", run_id, self._env.num_envs, self._identity.env_id)
            self._play(compression, InfoNumbers(welcome.log_info) if self._learner_minor >= INFO_MINOR else None)
        self._drain()

    def _play(self, compression: list[pb.Compression], info: InfoNumbers | None) -> None:
        env, step, env_us = self._env, 0, 0
        self._computing = True
        rows = env.reset()
        while not self._ending:
            if self._learner_minor < 1:
                rows.require_whole()  # such a learner does not support interrupted rows
            self._send(encode_observations(step, rows, env.spec_observation, compression, env_us, info))
            self._computing = False
            is_over = self._shutdown_requested or 0 < self._max_steps == step
            self.has_left = not is_over and self._may_leave_after(rows)
            if is_over or self.has_left:
                self._end(make_bye(pb.Bye.REASON_SHUTDOWN))
            received = self._receive_actions()
            if received is None:
                return
            actions = decode_actions(received, step, self._action_layouts)
            if received.episode_options:
                self._take_options(received.episode_options)
            began = time.monotonic()
            rows = env.step(actions)
            env_us = math.ceil((time.monotonic() - began) * 1e6) if received.traced else 0
            step += 1

    def _require_rows(self, name: str, minor: int, are_needed: bool) -> None:
        """Raises RefusedError if rows of agents are needed that the learner's minor version does not have."""
        if are_needed and self._learner_minor < minor:
            raise RefusedError(
                f"the learner's protocol version {PROTOCOL_VERSION}.{self._learner_minor} knows no agents that are "
                f"{name}, which takes {PROTOCOL_VERSION}.{minor}: update the learner"
            )

    def _take_options(self, entries: Sequence[pb.EpisodeOptions]) -> None:
        """Sets the options of the next episodes. Raises ProtocolError, and RefusedError if the environments take
        none.
        """
        options = decode_options(entries, self._env.num_envs)
        if not options:
            return
        try:
            self._env.set_options(options)
        except OptionsError as error:
            raise RefusedError(
                f"{error}, but the learner has a curriculum, which chooses the options of each episode: train without "
                "--curriculum"
            ) from error

    def _receive_actions(self) -> pb.Actions | None:
        """Blocks for Actions; returns None if the stream ended. With Actions, a shutdown waits for the rows that
        follow.
        """
        sent_at = time.monotonic()
        response = self._receive()
        self._computing = True  # before the check: shut_down may interrupt anywhere; it requests first, then checks
        if self._shutdown_requested:
            self._end(make_bye(pb.Bye.REASON_SHUTDOWN))
        if response is None or self._ending:
            return None
        self._action_wait_seconds.observe(time.monotonic() - sent_at)
        if not response.HasField("actions"):
            raise ProtocolError("expected Actions")
        return response.actions

    def _may_leave_after(self, rows: StepRows) -> bool:
        if self._leave_by is None:
            return False
        return bool((rows.terminated | rows.truncated).all()) or time.monotonic() >= self._leave_by

    def _send(self, request: pb.ActRequest) -> None:
        message = request.SerializeToString()
        self._status.sent_bytes += len(message)
        self._stream.send(message)

    def _receive_welcome(self) -> pb.Welcome | None:
        try:
            with cancelled_after(self._welcome_timeout_s, self._stream) as was_cancelled:
                response = self._receive()
        except DisconnectedError as error:
            if was_cancelled() and not self._ending:
                reason = f"no Welcome within {self._welcome_timeout_s:g} s"
                raise DisconnectedError(reason, grpc.StatusCode.DEADLINE_EXCEEDED) from error
            raise
        if response is not None and not response.HasField("welcome") and not self._ending:
            raise ProtocolError("the first response is not a Welcome")
        return response.welcome if response is not None else None

    def _receive(self) -> pb.ActResponse | None:
        """Blocks for the next response; returns None if the learner ended the stream after a Bye."""
        self._waits_since = time.monotonic()
        message, response = self._stream.receive(), None
        self._waits_since = None
        if message is not None:
            self._status.received_bytes += len(message)
            response = parse_response(message)
        if not self._ending:
            if response is None:
                raise DisconnectedError("the learner ended the stream", grpc.StatusCode.OK)
            if response.HasField("end"):
                raise end_error(response.end)
        return response

    def _drain(self) -> None:
        """Waits for the learner to end the stream after a Bye, so that the Bye arrives."""
        with (
            cancelled_after(DRAIN_TIMEOUT_S, self._stream),
            contextlib.suppress(DisconnectedError, RefusedError),
        ):
            while self._stream.receive() is not None:
                pass

    def _hello(self) -> pb.Hello:
        return pb.Hello(
            protocol_version=PROTOCOL_VERSION,
            protocol_minor=PROTOCOL_MINOR,
            env_server_id=self._identity.env_server_id,
            instance_id=self._identity.instance_id,
            env_id=self._identity.env_id,
            num_envs=self._env.num_envs,
            env_config=self._identity.env_config,
            run=self._identity.run,
            num_agents=self._env.num_agents,
            takes_turns=self._env.takes_turns,
            observation=[leaf_spec(leaf) for leaf in self._env.spec_observation],
            action=[leaf_spec(leaf) for leaf in self._env.spec_action],
            offered_compression=self._offered,
        )


@contextlib.contextmanager
def cancelled_after(timeout_s: float, stream: Stream) -> Iterator[Callable[[], bool]]:
    """Cancels the stream unless the block ends within timeout_s seconds: waiting for a response takes no timeout.

    Yields a function that returns True if that happened.
    """
    expired = threading.Event()

    def cancel() -> None:
        expired.set()
        stream.cancel()

    timer = threading.Timer(timeout_s, cancel)
    timer.daemon = True
    timer.start()
    try:
        yield expired.is_set
    finally:
        timer.cancel()
