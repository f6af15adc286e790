"""The native actor pool: gRPC streams of env-servers in, inference batches and training rollouts out.

`ActCall` is the other end: an env-server's call to a learner.

Shapes: N rows of an inference batch, T unroll_length, B batch_size. Every blocking call releases the GIL, has a
timeout, and is woken by `ActorPool.close`. Arrays are views of native memory, kept alive by the arrays themselves.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

PROTOCOL_VERSION: int
PROTOCOL_MINOR: int
OPTIONS_MINOR: int
"""From this minor version on, an env-server takes options of episodes."""

class ClosedError(RuntimeError):
    """The pool was closed or has failed; the message is the first error of a native thread, if there was one."""

class LeafSpec:
    """Shape and dtype of one leaf of an observation or action structure (kubebeast.v1.LeafSpec)."""

    def __init__(
        self,
        path: str,
        dtype: str,
        shape: Sequence[int],
        frame_stack: int = 1,
        num_categories: int = 0,
        bounded: bool = False,
        is_action_mask: bool = False,
    ) -> None: ...
    @property
    def path(self) -> str: ...
    @property
    def dtype(self) -> str: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def frame_stack(self) -> int: ...
    @property
    def num_categories(self) -> int: ...
    @property
    def bounded(self) -> bool: ...
    @property
    def is_action_mask(self) -> bool: ...
    @property
    def row_shape(self) -> tuple[int, ...]:
        """Shape of one row for the model: `shape`, or `(frame_stack, *shape)` if frame_stack > 1."""

class EnvSpec:
    """The leaves of one environment's observations and actions."""

    def __init__(
        self, env_id: str, observation: Sequence[LeafSpec], action: Sequence[LeafSpec], env_config: str = ""
    ) -> None: ...
    @property
    def env_id(self) -> str: ...
    @property
    def env_config(self) -> str:
        """Hello.env_config, printable ASCII that need not be JSON; may be empty."""
    @property
    def observation(self) -> list[LeafSpec]: ...
    @property
    def action(self) -> list[LeafSpec]: ...

class Episode:
    """A finished episode as its env-server counted it: the whole game, unclipped rewards."""

    @property
    def env_server_id(self) -> str: ...
    @property
    def env_id(self) -> str: ...
    @property
    def episode_return(self) -> float: ...
    @property
    def length(self) -> int: ...
    @property
    def info(self) -> list[float]:
        """One value for each key of the pool's log_info, NaN without a number; or empty."""
    @property
    def instance_id(self) -> str:
        """Name of the stream."""
    @property
    def step(self) -> int:
        """Step of the stream at which the episode ended."""
    @property
    def options(self) -> str:
        """Options with which the episode began, a JSON object; "" without any."""
    @property
    def opponents(self) -> list[int]:
        """Opponents that played the other agents of the environment, by the numbers in the replies, -1 for one without
        a reply; empty if all agents learn."""

class StreamEvent:
    """A stream that joined, left or was refused. Properties that the peer has not sent are empty."""

    @property
    def kind(self) -> str:
        """joined, left, refused (before acceptance), dial_failed (an env-server that listens was not reached),
        connection_refused (a connection without a stream) or accept_failed (no connection can be accepted). The last
        two are repeated at most every 5 minutes for a host and a reason; `stats` counts every connection."""
    @property
    def env_server_id(self) -> str: ...
    @property
    def instance_id(self) -> str: ...
    @property
    def env_id(self) -> str: ...
    @property
    def num_envs(self) -> int: ...
    @property
    def peer(self) -> str:
        """Transport address, as gRPC writes it."""
    @property
    def reason(self) -> str:
        """left: bye, disconnect, invalid, timeout, dropped or closed. connection_refused: the reason in the name of a
        counter of `ActorPool.stats`, connections_<reason>. Else the name of the gRPC status."""
    @property
    def detail(self) -> str:
        """One line for people; may be empty."""
    @property
    def env_config(self) -> str:
        """joined: Hello.env_config, as in EnvSpec."""
    @property
    def protocol_minor(self) -> int:
        """Minor version of the contract that the peer implements."""

class StreamInfo:
    """An accepted stream at one moment. Texts are as the peer sent them."""

    @property
    def env_server_id(self) -> str: ...
    @property
    def instance_id(self) -> str: ...
    @property
    def env_id(self) -> str: ...
    @property
    def peer(self) -> str:
        """Transport address, as gRPC writes it."""
    @property
    def num_envs(self) -> int: ...
    @property
    def slots(self) -> list[int]:
        """Places of its environments, as in `InferenceBatch.slots`."""
    @property
    def state(self) -> str:
        """The stream waits for: starting (the Welcome or the first observations), env (the next observations),
        inference (actions) or parked (room in the rollout queue)."""
    @property
    def num_steps(self) -> int:
        """Number of sampled env-steps."""
    @property
    def num_episodes(self) -> int: ...
    @property
    def connected_s(self) -> float: ...
    @property
    def env_s(self) -> float:
        """Seconds in this state since the stream joined, as are action_s (inference) and parked_s."""
    @property
    def action_s(self) -> float: ...
    @property
    def parked_s(self) -> float: ...

class StepTrace:
    """Times of one vector step, in nanoseconds of the Unix epoch; they ascend in the order of the properties."""

    @property
    def env_server_id(self) -> str: ...
    @property
    def instance_id(self) -> str: ...
    @property
    def env_id(self) -> str: ...
    @property
    def num_envs(self) -> int: ...
    @property
    def step(self) -> int:
        """Number of the step on its stream."""
    @property
    def batch_rows(self) -> int:
        """Rows of the inference batch that answered the step."""
    @property
    def policy_version(self) -> int: ...
    @property
    def env_ns(self) -> int:
        """Time that the environments took, by their env-server's clock, at most received_ns - actions_sent_ns; 0 if
        unknown."""
    @property
    def actions_sent_ns(self) -> int:
        """The actions of the previous step were passed to the transport."""
    @property
    def received_ns(self) -> int:
        """The observations were decoded."""
    @property
    def submitted_ns(self) -> int:
        """The step entered the batcher: later than received_ns if a full rollout queue held the stream back."""
    @property
    def taken_ns(self) -> int:
        """A call of next_inference returned the step's batch."""
    @property
    def gathered_ns(self) -> int:
        """The rows of the batch were copied."""
    @property
    def answered_ns(self) -> int:
        """InferenceBatch.reply was called."""
    @property
    def replied_ns(self) -> int:
        """The actions of the step were passed to the transport."""

class Histogram:
    """Distribution of values until one moment."""

    @property
    def bounds(self) -> list[float]:
        """Upper bounds of all buckets but the last, ascending."""
    @property
    def counts(self) -> list[int]:
        """Number of values in each bucket, not cumulative; the last bucket, above all bounds, has no bound."""
    @property
    def sum(self) -> float: ...

class InferenceBatch:
    """Rows that wait for actions. If deleted without a `reply`, it ends its streams with INTERNAL, which is counted."""

    @property
    def num_rows(self) -> int: ...
    @property
    def observation(self) -> list[NDArray[np.generic]]:
        """One array per leaf, [N, *row_shape]; with single frames, the newest frame of each stack, [N, *shape]."""
    @property
    def first_stacks(self) -> list[NDArray[np.generic]]:
        """With single frames, one array per leaf, [is_first.sum(), *row_shape]: the whole stacks of rows that begin an
        episode, in order; without rows for leaves that are no stacks. Otherwise empty."""
    @property
    def rewards(self) -> NDArray[np.float32]:
        """float32 [N]."""
    @property
    def terminated(self) -> NDArray[np.bool_]: ...
    @property
    def truncated(self) -> NDArray[np.bool_]: ...
    @property
    def is_first(self) -> NDArray[np.bool_]:
        """bool [N]: True for rows that need a core_state of zeros."""
    @property
    def interrupted(self) -> NDArray[np.bool_]:
        """bool [N]: True if the row only keeps its environment's place, with an observation of zeros; if is_first is
        True as well, the environment is absent, and no episode has begun."""
    @property
    def last_actions(self) -> list[NDArray[np.generic]]:
        """One array per action leaf, [N, *shape]: the action that led to the row, zero if is_first."""
    @property
    def slots(self) -> NDArray[np.int32]:
        """int32 [N], each below max_envs and unique in the batch: the place of a row's core_state."""
    @property
    def unroll_start(self) -> NDArray[np.bool_]:
        """bool [N]: True for row 0 of an unroll, which needs the core_state from before the row."""
    @property
    def task(self) -> NDArray[np.int64]:
        """int64 [N]: index in `task_shares` of the row's env_id; 0 without shares."""
    @property
    def opponent(self) -> NDArray[np.bool_]:
        """bool [N]: True for rows that an opponent plays, and that are not in rollouts. A slot stays one."""
    def reply(
        self,
        actions: Sequence[NDArray[np.generic]],
        policy_logits: NDArray[np.float32],
        baseline: NDArray[np.float32],
        policy_version: int,
        core_state: NDArray[np.float32] | None = None,
        opponents: NDArray[np.int64] | None = None,
    ) -> None:
        """Stores the outputs in the rollouts and writes the actions to every stream; at most once. Never blocks.

        Args:
            actions: One array per action leaf, [N, *shape] of the leaf's dtype.
            policy_logits: [N, num_logits].
            baseline: [N].
            policy_version: Number of updates of the weights.
            core_state: [unroll_start.sum(), core_state_size], required if core_state_size > 0.
            opponents: [N], number of the opponent that plays the row, for Episode.opponents; -1, as without, for none.

        Raises:
            ValueError: An argument, which the message names, has a wrong shape or dtype.
            RuntimeError: The batch was answered before.
        """
    def split(self) -> list[InferenceBatch]:
        """Returns one batch per stream, in order, each with this batch's memory and a reply of its own. This batch then
        counts as answered. Raises RuntimeError if it was answered before."""

class RolloutBatch:
    """B unrolls of T transitions, time-major. Row T of an unroll is row 0 of the slot's next one."""

    @property
    def observation(self) -> list[NDArray[np.generic]]:
        """One array per leaf, [T+1, B, *row_shape]; with single frames, each frame of the stacks once, [R, B, *shape].
        R is T + frame_stack, or more if an unroll has more distinct frames; unused rows are zeros."""
    @property
    def frame_index(self) -> list[NDArray[np.int32]]:
        """With single frames, one array per leaf, int32 [T+1, B, frame_stack]: the rows of `observation`, in the same
        column, that make up each row's stack, oldest first; [T+1, B, 0] for leaves that are no stacks. Otherwise
        empty."""
    @property
    def rewards(self) -> NDArray[np.float32]:
        """float32 [T+1, B]: received on arrival at the row's observation; 0 if is_first, and in padding."""
    @property
    def terminated(self) -> NDArray[np.bool_]:
        """bool [T+1, B]."""
    @property
    def truncated(self) -> NDArray[np.bool_]:
        """bool [T+1, B]; set in the last row of a partial unroll."""
    @property
    def is_first(self) -> NDArray[np.bool_]:
        """bool [T+1, B]."""
    @property
    def last_actions(self) -> list[NDArray[np.generic]]:
        """One array per action leaf, [T+1, B, *shape]: the action that led to the row, zero if is_first."""
    @property
    def actions(self) -> list[NDArray[np.generic]]:
        """One array per action leaf, [T, B, *shape]."""
    @property
    def policy_logits(self) -> NDArray[np.float32]:
        """float32 [T, B, num_logits], of the behavior policy."""
    @property
    def baseline(self) -> NDArray[np.float32]:
        """float32 [T, B]: the value estimate of the behavior policy."""
    @property
    def policy_version(self) -> NDArray[np.int64]:
        """int64 [T, B]; padding repeats the newest valid version."""
    @property
    def valid(self) -> NDArray[np.bool_]:
        """bool [T, B]: False for padding, and for transitions from the last row of an episode to the first of the next
        one."""
    @property
    def core_state(self) -> NDArray[np.float32]:
        """float32 [B, core_state_size]: the state before row 0, to which is_first of the row is still to be applied."""
    @property
    def task(self) -> NDArray[np.int64]:
        """int64 [B]: index in `task_shares` of the unroll's env_id; 0 without shares."""
    @property
    def origin(self) -> NDArray[np.int64]:
        """int64 [3, B]: number of the unroll's stream in this pool, place of its environment in the stream, and number
        of the unroll in the stream. Row T of an unroll is row 0 of the next number of the same environment."""
    @property
    def num_transitions(self) -> int:
        """Number of valid transitions, which are the env-steps of this batch."""

class ActorPool:
    """Listens for env-servers or dials them, batches their rows for inference and assembles rollouts.

    The first accepted Hello determines the EnvSpec unless `expected` is given. Until then, a Hello with an env_id other
    than `opening_env` is refused with UNAVAILABLE, unless that is empty. Streams that match the spec are welcomed after
    `open`. Memory is bounded: there are at most max_envs slots, and a stream receives no actions while the rollout
    queue has no room for its finished unrolls.
    """

    def __init__(
        self,
        *,
        address: str,
        run_id: str,
        unroll_length: int,
        batch_size: int,
        min_inference_rows: int = 1,
        max_inference_rows: int = 256,
        inference_timeout_ms: int = 10,
        max_queued_rollouts: int = 0,
        max_streams: int = 4096,
        max_envs: int = 16384,
        max_envs_per_stream: int = 1024,
        max_message_bytes: int = 64 << 20,
        max_transport_bytes: int = 0,
        min_partial_steps: int = 1,
        handshake_timeout_ms: int = 10_000,
        step_timeout_ms: int = 60_000,
        expected: EnvSpec | None = None,
        tls_cert: str = "",
        tls_key: str = "",
        tls_ca: str = "",
        tls_refresh_s: int = 10,
        token_file: str = "",
        max_offences: int = 20,
        opening_env: str = "",
        task_shares: Sequence[tuple[str, float]] = (),
        keep_surplus: bool = False,
        log_info: Sequence[str] = (),
        episode_options: bool = False,
        opponents: bool = False,
        turns: bool = True,
    ) -> None:
        """Creates a pool that is not started.

        An inference batch is handed out as soon as min_inference_rows wait, or earlier if all welcomed streams wait or
        the oldest row has waited for inference_timeout_ms. It has whole streams, oldest first, up to
        max_inference_rows; it has more only if a single stream does.

        Args:
            address: "host:port" (port 0 picks a free one), "unix:/path", or empty for a pool that only dials.
            run_id: Name of the run; env-servers that expect another run are refused.
            unroll_length: Transitions per unroll, T. If 0, the pool assembles no rollouts, `next_rollouts` raises
                RuntimeError, and a step counts as sampled and delivered as soon as `next_inference` returns it.
            batch_size: Unrolls per rollout batch, B.
            min_inference_rows: Rows that an inference batch waits for.
            max_inference_rows: Most rows of an inference batch.
            inference_timeout_ms: Longest wait of a row for min_inference_rows.
            max_queued_rollouts: Most unrolls that wait or that running streams are about to deliver; further streams
                are parked, in turn, and a single stream may exceed the limit. 0 means one per environment and
                2 * batch_size, at most 8 * batch_size.
            max_streams: Most streams at a time.
            max_envs: Most environments at a time.
            max_envs_per_stream: Most environments of one stream.
            max_message_bytes: Largest accepted message; messages that gRPC has compressed are malformed.
            max_transport_bytes: Most memory of gRPC for messages on their way, over all connections; connections above
                it are ended. 0 means 1 GiB, or 16 * max_message_bytes if that is more.
            min_partial_steps: Fewest transitions of an unroll that ended early; shorter ones are dropped and counted.
            handshake_timeout_ms: Longest handshake of a stream.
            step_timeout_ms: Longest time that a stream may take for a step.
            expected: The only admitted environment; None admits that of the first Hello.
            tls_cert: PEM file with the pool's certificate and its chain.
            tls_key: PEM file with the key of tls_cert.
            tls_ca: PEM file with certificate authorities. Peers that dial need a certificate of one of them (mutual
                TLS); peers that are dialed are verified by them.
            tls_refresh_s: Interval at which the files are read again.
            token_file: File with bearer tokens, one per line, read again for every call. Peers that dial need any of
                them; the first is sent to peers that are dialed.
            max_offences: Most offenses of a host: streams that broke the contract, had no token or sent no Hello, and
                connections without a stream or with more traffic than a stream needs. Above it, further TCP connections
                of the host wait and are admitted slowly. One offense is forgiven every 3 s. 0 disables the limit.
            opening_env: Environment of the first Hello, as env-servers name it; empty allows any.
            task_shares: Environments to play, with the weights of their shares in the unrolls of `next_rollouts`;
                streams of others are refused with FAILED_PRECONDITION. Each task has its part of max_queued_rollouts,
                and its turn is waited for unless it has no stream. Empty: one task, of any environment.
            keep_surplus: If True, a stream for which too few of the max_envs slots are free waits for its Welcome;
                otherwise it is refused with RESOURCE_EXHAUSTED.
            log_info: Keys of numbers in the environments' info that come with each Episode: at most 32, of 1 to 100
                printable ASCII characters.
            episode_options: If True, environments are reset with the options of `push_episode_options`, unless their
                env-servers implement a minor version before 7. While there are none, they keep their own.
            opponents: If True, one agent of each environment learns, and opponents play the others. Env-servers with
                environments of one agent are refused.
            turns: If False, env-servers with agents that take turns are refused, as they are without rollouts.

        Raises:
            ValueError: An argument, which the message names, cannot be used.
        """
    def start(self) -> None:
        """Binds and listens, if there is an address. Raises OSError if it cannot be bound."""
    def dial(self, endpoints: Sequence[tuple[str, str]]) -> None:
        """Keeps a stream to each listening env-server at `endpoints`, which replace those of the previous call.

        An endpoint that cannot be reached is dialed again after a jittered exponential back-off of at most 8 s. Streams
        to endpoints that are no longer listed go on until they end. Never blocks.

        Args:
            endpoints: Pairs of address and server name; the name is that in the certificate, empty for the host of the
                address.

        Raises:
            RuntimeError: TLS is on without tls_ca.
        """
    @property
    def address(self) -> str:
        """The bound address, with the actual port."""
    def wait_env_spec(self, timeout_ms: int) -> EnvSpec | None:
        """Returns `expected` or the spec of the first accepted Hello, which is on trial until `open`; None after the
        timeout."""
    def expect(self, spec: EnvSpec) -> None:
        """Determines the environment in place of the first env-server; does nothing if it is determined already."""
    def refuse_env_spec(self, reason: str) -> None:
        """Refuses the spec of wait_env_spec if no model can be made for it: its streams, and further ones like them,
        end with FAILED_PRECONDITION and `reason`, and wait_env_spec waits for another env-server.

        Raises RuntimeError if the spec is `expected`, or if the pool is open.
        """
    def open(
        self, num_logits: int, core_state_size: int, interleaved: Sequence[bool] = (), single_frames: bool = False
    ) -> None:
        """Sets the output sizes of the model and begins to welcome streams; once.

        Args:
            num_logits: Number of policy_logits of a row, A.
            core_state_size: Size of the recurrent state of a row; 0 without one.
            interleaved: One value per observation leaf, or none. If True, the rows of a stack of bytes have the shape
                [*shape, frame_stack], the memory order in which convolutions are fastest, in place of
                [frame_stack, *shape].
            single_frames: If True, batches hold each frame of a stack once, for stacks that are made elsewhere; then
                `interleaved` has no effect.

        Raises:
            ValueError: A leaf, which the message names, cannot be interleaved.
        """
    def next_inference(self, timeout_ms: int) -> InferenceBatch | None:
        """Returns the next rows to act on; None after the timeout. Raises ClosedError after `close`. For any number of
        threads."""
    def next_rollouts(self, timeout_ms: int, min_policy_version: int = 0) -> RolloutBatch | None:
        """Returns the next B unrolls, the oldest of each task; None after the timeout. Raises ClosedError after
        `close`.

        Unrolls that began with weights older than min_policy_version are dropped and counted; 0 drops none.
        """
    def push_episode_options(self, texts: Sequence[str]) -> None:
        """Adds the options of coming episodes, in their order. Never blocks. Only with `episode_options`.

        Raises ValueError for a text that is no JSON object of at most 4096 printable ASCII characters, as far as its
        characters show; none is added then.
        """
    def wait_options_room(self, timeout_ms: int) -> int | None:
        """Blocks until at least half of the places for options are free, and returns their number; None after the
        timeout. There is a place for each environment, and at least 32. Raises ClosedError."""
    def take_episodes(self) -> list[Episode]:
        """Returns the episodes that ended since the last call, at most the newest 65 536."""
    def take_stream_events(self) -> list[StreamEvent]:
        """Returns the events since the last call, oldest first, at most the newest 4096."""
    def trace_next_step(self) -> None:
        """Traces one step of the next stream that sends Actions; calls before that have no further effect."""
    def take_step_traces(self) -> list[StepTrace]:
        """Returns the traced steps that were answered since the last call, at most the newest 256. A stream that ends
        during a traced step leaves no trace."""
    def stats(self) -> dict[str, int]:
        """Returns counters and gauges at one moment.

        Gauges: streams, envs, streams_in_reserve, slots, rows_waiting, rollouts_queued, rollouts_running,
        rollout_queue_capacity, streams_parked, steps_in_flight.
        Counters: streams_accepted, streams_ended_bye, streams_ended_disconnect, streams_ended_invalid,
        streams_ended_timeout, streams_ended_dropped, streams_ended_closed, streams_rejected, streams_unauthenticated,
        dials_failed, connections_blocked, connections_closed, connections_silent, connections_plaintext,
        connections_tls, connections_garbage, connections_no_call, connections_bytes, connections_calls,
        connections_crowded,
        messages_received, bytes_received, bytes_sent, rows_received, env_interruptions, opponent_steps, steps_sampled,
        steps_delivered, steps_dropped_partial, steps_dropped_stale, steps_dropped_close, rollouts_completed,
        rollouts_partial, rollouts_dropped_partial, rollouts_dropped_stale, rollouts_delivered, rollout_padded_steps,
        inference_batches, inference_rows, inference_flush_ready, inference_flush_all, inference_flush_timeout,
        inference_dropped, inference_busy_us, episodes, options_sent, options_repeated.
        connections_: TCP connections without a stream, or that were shut down. blocked: they waited in vain, as their
        host has too many offenses. closed: by the peer, before its first byte. silent: without data for
        handshake_timeout_ms. plaintext, tls: without TLS although it is on, with TLS although it is off. garbage:
        neither TLS nor HTTP/2. no_call: without a call for handshake_timeout_ms. bytes, calls: more than a stream
        needs. crowded: too many others without a stream.
        inference_busy_us: microseconds of all threads between next_inference and the reply.
        options_sent, options_repeated: resets with further options, and those for which none were ready.
        opponent_steps: transitions of agents that opponents play.
        In every result, steps_sampled == steps_delivered + steps_dropped_* + steps_in_flight.
        """
    def histograms(self) -> dict[str, Histogram]:
        """Returns distributions since the start, in seconds unless noted.

        rollout_queue_wait: from the end of an unroll until the learner takes it. stream_parked: time that a stream is
        held back by a full rollout queue. stream_env: from sent Actions to the next Observations. stream_action: from
        Observations, or the end of parking, to sent Actions. inference_batch_rows: rows of a batch.
        inference_queue_wait: time that a step waits for its batch. inference_gather, inference_model, inference_reply:
        time to copy the rows of a batch, of the model, and to send the reply.
        """
    def streams(self) -> list[StreamInfo]:
        """Returns the accepted streams."""
    def drain(self, finished: bool = False) -> None:
        """Refuses further streams with UNAVAILABLE, dials no more, and answers health checks with NOT_SERVING; present
        streams go on. Idempotent, never blocks for long.

        finished: If True, further streams are refused with OUT_OF_RANGE, as the run is over.
        """
    def close(self, grace_ms: int = 1000) -> None:
        """Stops listening, ends every stream with UNAVAILABLE and wakes every waiting thread. Idempotent, from any
        thread."""

class ActCall:
    """A call of ActorPool.Act on a connection of its own; messages are bytes.

    It has no threads: `send` writes in the calling thread, and an answer wakes only the thread in `receive`. A call
    that has not ended is cancelled if the object is deleted.
    """

    def __init__(
        self,
        address: str,
        *,
        tls_ca: bytes = b"",
        tls_cert: bytes = b"",
        tls_key: bytes = b"",
        tls_server_name: str = "",
        authorization: str | None = None,
        connect_timeout_ms: int = 5000,
        use_proxy: bool | None = None,
    ) -> None:
        """Starts to dial, without a wait for the connection.

        Args:
            address: "host:port" or "unix:/path" of the learner.
            tls_ca: Text of a PEM file with certificate authorities. Without any of the three texts there is no TLS.
            tls_cert: Text of a PEM file with the certificate of this side.
            tls_key: Text of a PEM file with its key.
            tls_server_name: Name in the learner's certificate, by default that of the address.
            authorization: Value of the header `authorization`.
            connect_timeout_ms: Longest time to connect.
            use_proxy: True to connect through the HTTP proxy that the environment variables name. None does so for
                addresses that are neither of this machine nor of a Service (".svc").
        """
    def send(self, message: bytes, *, is_last: bool = False) -> None:
        """Sends a message; those after the last one are dropped. Never blocks; for any thread and signal handlers."""
    def receive(self) -> bytes | None:
        """Blocks until the next message and returns it; None at the end. For one thread at a time; signal handlers run
        meanwhile."""
    def cancel(self) -> None:
        """Ends the call at once and wakes `receive`. For any thread."""
    def status(self) -> tuple[int, str]:
        """Returns the code and the details of gRPC, after the end."""
