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

class ClosedError(RuntimeError):
    """The pool was closed, or failed; the message is the first error of a native thread, if there was one."""

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
        """What the model sees of one row: `shape`, or `(frame_stack, *shape)` when frame_stack > 1."""

class EnvSpec:
    """The leaves of one environment's observations and actions."""

    def __init__(
        self, env_id: str, observation: Sequence[LeafSpec], action: Sequence[LeafSpec], env_config: str = ""
    ) -> None: ...
    @property
    def env_id(self) -> str: ...
    @property
    def env_config(self) -> str:
        """Hello.env_config, printable ASCII that need not be JSON; empty where there was none."""
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

class StreamEvent:
    """A stream that came, went or was turned away. What the peer has not said is empty."""

    @property
    def kind(self) -> str:
        """joined, left, refused (before acceptance), dial_failed (an env-server that listens was not reached),
        connection_refused (it brought no stream) or accept_failed (no connection can be accepted). The last two repeat
        themselves every 5 minutes at most, for each host and reason; `stats` counts every connection."""
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
        """left: bye, disconnect, invalid, timeout, dropped or closed. connection_refused: what the counter
        connections_<reason> of `ActorPool.stats` counts. Else the name of the gRPC status."""
    @property
    def detail(self) -> str:
        """For people; one line, may be empty."""
    @property
    def env_config(self) -> str:
        """joined: Hello.env_config, as in EnvSpec."""

class StreamInfo:
    """An accepted stream at one moment. Texts are the peer's, as it sent them."""

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
    def state(self) -> str:
        """What it waits for: starting (the Welcome or the first observations), env (the next observations), inference
        (actions) or parked (room in the rollout queue)."""
    @property
    def num_steps(self) -> int:
        """Env-steps sampled."""
    @property
    def num_episodes(self) -> int: ...
    @property
    def connected_s(self) -> float: ...
    @property
    def env_s(self) -> float:
        """Seconds since it connected that it was in this state; so action_s (inference) and parked_s."""
    @property
    def action_s(self) -> float: ...
    @property
    def parked_s(self) -> float: ...

class StepTrace:
    """Where the time of one vector step went. Times are nanoseconds of the Unix epoch, in the order they have here."""

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
        """Its number on the stream."""
    @property
    def batch_rows(self) -> int:
        """Rows of the inference batch that answered it."""
    @property
    def policy_version(self) -> int: ...
    @property
    def env_ns(self) -> int:
        """How long the environments computed, as their env-server says, at most received_ns - actions_sent_ns; 0: it
        does not say."""
    @property
    def actions_sent_ns(self) -> int:
        """Of the step before: handed to the transport."""
    @property
    def received_ns(self) -> int:
        """The observations, decoded."""
    @property
    def submitted_ns(self) -> int:
        """To the batcher: later than received_ns where a full rollout queue held the stream back."""
    @property
    def taken_ns(self) -> int:
        """With its batch, by a caller of next_inference."""
    @property
    def gathered_ns(self) -> int:
        """The batch's rows are copied."""
    @property
    def answered_ns(self) -> int:
        """By InferenceBatch.reply."""
    @property
    def replied_ns(self) -> int:
        """Its actions sent."""

class Histogram:
    """How values were distributed until one moment."""

    @property
    def bounds(self) -> list[float]:
        """Upper ones of all buckets but the last, ascending."""
    @property
    def counts(self) -> list[int]:
        """Values in each bucket alone; one more than there are bounds, for those above them all."""
    @property
    def sum(self) -> float: ...

class InferenceBatch:
    """Rows that wait for actions. Dropping it without `reply` ends its streams with INTERNAL, which is counted."""

    @property
    def num_rows(self) -> int: ...
    @property
    def observation(self) -> list[NDArray[np.generic]]:
        """One array a leaf, [N, *row_shape]; where the pool gives single frames, the newest of a stack, [N, *shape]."""
    @property
    def first_stacks(self) -> list[NDArray[np.generic]]:
        """Where the pool gives single frames, one array a leaf, [is_first.sum(), *row_shape]: the whole stacks of rows
        that begin an episode, in order; without rows for other leaves. Else empty."""
    @property
    def rewards(self) -> NDArray[np.float32]:
        """float32 [N]."""
    @property
    def terminated(self) -> NDArray[np.bool_]: ...
    @property
    def truncated(self) -> NDArray[np.bool_]: ...
    @property
    def is_first(self) -> NDArray[np.bool_]:
        """bool [N]: core_state must be zero before these rows."""
    @property
    def interrupted(self) -> NDArray[np.bool_]:
        """bool [N]: the row only keeps its environment's place, its observation is zeros; where is_first, too, it is
        absent, and no episode has begun."""
    @property
    def last_actions(self) -> list[NDArray[np.generic]]:
        """One array an action leaf, [N, *shape]: the action that led to the row, zero where is_first."""
    @property
    def slots(self) -> NDArray[np.int32]:
        """int32 [N], each below max_envs and unique in the batch: where a row's core_state is kept."""
    @property
    def unroll_start(self) -> NDArray[np.bool_]:
        """bool [N]: the row is row 0 of an unroll, which needs the core_state from before this row."""
    @property
    def task(self) -> NDArray[np.int64]:
        """int64 [N]: index in `task_shares` of the row's env_id; 0 without shares."""
    def reply(
        self,
        actions: Sequence[NDArray[np.generic]],
        policy_logits: NDArray[np.float32],
        baseline: NDArray[np.float32],
        policy_version: int,
        core_state: NDArray[np.float32] | None = None,
    ) -> None:
        """Stores the outputs in the rollouts and writes the actions to every stream; at most once.

        actions: one array an action leaf, [N, *shape] of the leaf's dtype. policy_logits [N, num_logits].
        baseline [N]. core_state [unroll_start.sum(), core_state_size], required when core_state_size > 0.
        ValueError names the argument whose shape or dtype is wrong; RuntimeError on a second call. Never blocks.
        """
    def split(self) -> list[InferenceBatch]:
        """The rows of each stream as a batch of its own, in order, which shares this one's memory and is answered by
        itself. This one counts as answered; RuntimeError where it was before."""

class RolloutBatch:
    """B unrolls of T transitions, time-major. Row T of an unroll is row 0 of the slot's next one."""

    @property
    def observation(self) -> list[NDArray[np.generic]]:
        """One array a leaf, [T+1, B, *row_shape]; where the pool gives single frames, those of a stack, each once,
        [R, B, *shape]. R is T + frame_stack, or more where an unroll has more distinct frames; the rest is zeros."""
    @property
    def frame_index(self) -> list[NDArray[np.int32]]:
        """Where the pool gives single frames, one array a leaf, int32 [T+1, B, frame_stack]: the rows of `observation`,
        in the same column, that make up each row's stack, oldest first; [T+1, B, 0] for other leaves. Else empty."""
    @property
    def rewards(self) -> NDArray[np.float32]:
        """float32 [T+1, B]: received on arrival at the row's observation; 0 where is_first and in padding."""
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
        """One array an action leaf, [T+1, B, *shape]: the action that led to the row, zero where is_first."""
    @property
    def actions(self) -> list[NDArray[np.generic]]:
        """One array an action leaf, [T, B, *shape]."""
    @property
    def policy_logits(self) -> NDArray[np.float32]:
        """float32 [T, B, num_logits]: the behaviour policy."""
    @property
    def baseline(self) -> NDArray[np.float32]:
        """float32 [T, B]: the behaviour policy's value estimate."""
    @property
    def policy_version(self) -> NDArray[np.int64]:
        """int64 [T, B]; padding repeats the newest valid version."""
    @property
    def valid(self) -> NDArray[np.bool_]:
        """bool [T, B]: transition t is neither padding nor from a final row to the next episode's first."""
    @property
    def core_state(self) -> NDArray[np.float32]:
        """float32 [B, core_state_size]: before row 0 and before its is_first is applied."""
    @property
    def task(self) -> NDArray[np.int64]:
        """int64 [B]: index in `task_shares` of the unroll's env_id; 0 without shares."""
    @property
    def num_transitions(self) -> int:
        """Number of valid transitions: the env-steps this batch delivers."""

class ActorPool:
    """Listens for env-servers or dials them, batches their rows for inference and assembles rollouts.

    The first accepted Hello decides the EnvSpec unless `expected` is given; until then Hellos of another env_id than
    `opening_env` are refused with UNAVAILABLE, where it is not empty. Streams that match the spec are welcomed once
    `open` was called and wait until then. Memory is bounded: at most max_envs slots, and a stream whose finished
    unrolls find the rollout queue full is not asked for more until the learner has caught up.
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
    ) -> None:
        """address: "host:port" (port 0 picks one), "unix:/path", or empty for a pool that only dials.

        unroll_length 0: the pool assembles no rollouts, `next_rollouts` is a RuntimeError, and a step counts as sampled
        and delivered when `next_inference` hands it out. max_queued_rollouts: of unrolls that wait
        and that running streams are about to deliver, beyond which streams are parked, in turn; one stream may overrun
        it. 0 means one an environment and 2 * batch_size, at most 8 * batch_size.
        max_transport_bytes: what messages on their way may take in gRPC, all connections together; above it connections
        are ended. 0 means 1 GiB, or 16 * max_message_bytes if that is more. Messages that gRPC compressed are
        malformed.

        An inference batch is given out as soon as min_inference_rows wait; fewer when every welcomed stream waits or
        the oldest row has waited inference_timeout_ms. It holds whole streams, oldest first, up to max_inference_rows
        (more only when one stream alone has more). ValueError names a bad argument.

        tls_cert, tls_key: PEM files of the pool's own identity. tls_ca: PEM file of the authorities that a peer's
        certificate must descend from: demanded of whoever dials (mutual TLS), checked of whoever is dialled. The files
        are looked at again every tls_refresh_s seconds. token_file: bearer tokens, one a line: any is accepted from
        whoever dials, the first is sent to whoever is dialled; read again for every call. max_offences: further TCP
        connections of a host have to wait, and are let in slowly, while it has more offences than this (streams that
        broke the contract, had no token or never said Hello, and connections that brought no stream, or more than one
        needs); one is forgiven every 3 s. 0: no host has to.

        task_shares: the environments that are played, with the weights of their shares in the unrolls of
        `next_rollouts`; streams of others are refused with FAILED_PRECONDITION. A task holds its part of
        max_queued_rollouts and is waited for when it is its turn, unless it has no stream. Empty: one task, of any
        environment.

        log_info: keys of the environments' info whose values come with each Episode: at most 32, of 1 to 100 printable
        ASCII characters.

        keep_surplus: a stream that finds too few of the max_envs slots free waits for its Welcome until there are, in
        place of being refused with RESOURCE_EXHAUSTED.
        """
    def start(self) -> None:
        """Binds and listens, where there is an address. OSError when it cannot be bound."""
    def dial(self, endpoints: Sequence[tuple[str, str]]) -> None:
        """Keeps a stream to each env-server that listens at one of `endpoints`, (address, server name), which replace
        those of the call before; the name is that in its certificate, empty for the host of the address.

        An endpoint that cannot be reached is dialled again after a jittered exponential back-off of at most 8 s. The
        streams of endpoints left out go on to their end. RuntimeError where TLS is on without tls_ca. Never blocks.
        """
    @property
    def address(self) -> str:
        """The bound address, with the port that was picked."""
    def wait_env_spec(self, timeout_ms: int) -> EnvSpec | None:
        """The spec of the first accepted Hello (or `expected`), which is on trial until `open`; None at the timeout."""
    def expect(self, spec: EnvSpec) -> None:
        """Decides the environment in place of the first env-server; changes nothing where that was decided before."""
    def refuse_env_spec(self, reason: str) -> None:
        """Refuses what wait_env_spec returned, as no model can be made for it: its streams, and further ones like them,
        end with FAILED_PRECONDITION and `reason`, and wait_env_spec waits for another env-server.

        RuntimeError where the spec was given as `expected`, or the pool is open.
        """
    def open(
        self, num_logits: int, core_state_size: int, interleaved: Sequence[bool] = (), single_frames: bool = False
    ) -> None:
        """Fixes the model's output sizes and starts to welcome streams; once.

        interleaved: one for each observation leaf, or none. Where true, the rows of a stack of bytes come as
        [*shape, frame_stack], in the memory order that convolutions are fastest in, instead of [frame_stack, *shape].
        ValueError names the leaf that is no such stack.
        single_frames: every frame of a stack comes once, for stacks that are made elsewhere; in place of `interleaved`.
        """
    def next_inference(self, timeout_ms: int) -> InferenceBatch | None:
        """The next rows to act on; None at the timeout; ClosedError after close. Any number of threads may call."""
    def next_rollouts(self, timeout_ms: int, min_policy_version: int = 0) -> RolloutBatch | None:
        """The next B unrolls, the oldest of each task; None at the timeout; ClosedError after close.

        Unrolls that began with weights older than min_policy_version are dropped and counted; 0 drops none.
        """
    def take_episodes(self) -> list[Episode]:
        """Episodes that ended since the last call (the newest 65 536 at most)."""
    def take_stream_events(self) -> list[StreamEvent]:
        """What happened to streams since the last call, oldest first (the newest 4096 at most)."""
    def trace_next_step(self) -> None:
        """Traces one step of the next stream that sends Actions; one, however often it is asked for before that."""
    def take_step_traces(self) -> list[StepTrace]:
        """Traced steps that were answered since the last call (the newest 256 at most). A stream that ends in a traced
        step leaves no trace."""
    def stats(self) -> dict[str, int]:
        """Counters and gauges at one moment.

        Gauges: streams, envs, streams_in_reserve, slots, rows_waiting, rollouts_queued, rollouts_running,
        rollout_queue_capacity, streams_parked, steps_in_flight.
        Counters: streams_accepted, streams_ended_bye, streams_ended_disconnect, streams_ended_invalid,
        streams_ended_timeout, streams_ended_dropped, streams_ended_closed, streams_rejected, streams_unauthenticated,
        dials_failed, connections_blocked, connections_closed, connections_silent, connections_plaintext,
        connections_tls, connections_garbage, connections_no_call, connections_bytes, connections_calls,
        connections_crowded,
        messages_received, bytes_received, bytes_sent, rows_received, env_interruptions, steps_sampled,
        steps_delivered, steps_dropped_partial, steps_dropped_stale, steps_dropped_close, rollouts_completed,
        rollouts_partial, rollouts_dropped_partial, rollouts_dropped_stale, rollouts_delivered, rollout_padded_steps,
        inference_batches, inference_rows, inference_flush_ready, inference_flush_all, inference_flush_timeout,
        inference_dropped, inference_busy_us, episodes.
        connections_: TCP connections that brought no stream, or were shut down. blocked: their host has too many
        offences, and they waited in vain. closed: by the peer, before it sent a byte. silent: nothing came in
        handshake_timeout_ms. plaintext, tls: without TLS where it is on, with it where it is off. garbage: neither TLS
        nor HTTP/2. no_call: no call came in handshake_timeout_ms. bytes, calls: more than a stream needs. crowded: too
        many others without a stream.
        inference_busy_us: microseconds of all threads, from taking a batch to its answer.
        In every answer steps_sampled == steps_delivered + steps_dropped_* + steps_in_flight.
        """
    def histograms(self) -> dict[str, Histogram]:
        """Distributions since the start, in seconds where nothing else is said.

        rollout_queue_wait: from an unroll's end until the learner took it. stream_parked: a stream held back by a full
        rollout queue. stream_env: from Actions sent to the next Observations. stream_action: from Observations, or the
        end of parking, to Actions sent. inference_batch_rows: rows. inference_queue_wait: of a step for its batch.
        inference_gather, inference_model, inference_reply: copying a batch's rows, the model, handing out the answer.
        """
    def streams(self) -> list[StreamInfo]:
        """The accepted streams."""
    def drain(self, finished: bool = False) -> None:
        """Refuses further streams with UNAVAILABLE, dials no more, and answers health checks with NOT_SERVING; the
        streams that are there go on. finished: refuses them with OUT_OF_RANGE, for the run is over. Idempotent, never
        blocks for long.
        """
    def close(self, grace_ms: int = 1000) -> None:
        """Stops listening, ends every stream with UNAVAILABLE, wakes every waiter. Idempotent, from any thread."""

class ActCall:
    """A call of ActorPool.Act on a connection of its own, whose messages are bytes.

    It has no threads: `send` writes by itself, and an answer wakes the thread in `receive` and no other one. Deleting
    it cancels what has not ended.
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
        """Dials at once and does not wait for it.

        tls_: the texts of PEM files; without any of them there is no TLS. tls_server_name: what the learner's
        certificate is for, by default the address. authorization: the header of that name. use_proxy: whether gRPC
        asks the HTTP proxy that the environment names to connect; by default for addresses that are neither of this
        machine nor a Service's (".svc").
        """
    def send(self, message: bytes, *, is_last: bool = False) -> None:
        """Never blocks; from any thread, and from a signal handler. What follows the last message is dropped."""
    def receive(self) -> bytes | None:
        """Blocks for the next message; None at the end. For one thread at a time; signal handlers run meanwhile."""
    def cancel(self) -> None:
        """Ends the call at once and wakes `receive`; from any thread."""
    def status(self) -> tuple[int, str]:
        """Code and details of gRPC; after the end."""
