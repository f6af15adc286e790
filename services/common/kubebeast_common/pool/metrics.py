"""Metrics of a native pool: rollouts, streams and inference. Counters start at 0 with the process.

Values are ActorPool.stats and ActorPool.histograms; `restarts` and `inference_threads` are its user's.
"""

from kubebeast_common.metrics import COUNTER, GAUGE, HISTOGRAM, Row


def _each(source: str, *labels: str) -> dict[str, str]:
    """The values of a metric with one label: "steps_sampled" of "steps" and "sampled"."""
    return {label: f"{source}_{label}" for label in labels}


STEPS = (
    Row(
        COUNTER,
        "kubebeast_steps",
        "Env-steps by what became of them; sampled ones are all the others and kubebeast_steps_in_flight together.",
        _each("steps", "sampled", "delivered", "dropped_partial", "dropped_stale", "dropped_close"),
        ("outcome",),
    ),
    Row(GAUGE, "kubebeast_steps_in_flight", "Env-steps sampled and neither delivered nor dropped.", "steps_in_flight"),
    Row(COUNTER, "kubebeast_rollouts_completed", "Unrolls of full length.", "rollouts_completed"),
    Row(COUNTER, "kubebeast_rollouts_partial", "Unrolls that a stream's end cut short.", "rollouts_partial"),
    Row(COUNTER, "kubebeast_rollouts_delivered", "Unrolls that the learner took.", "rollouts_delivered"),
    Row(
        COUNTER,
        "kubebeast_rollouts_dropped",
        "Unrolls dropped: too short, or too old.",
        _each("rollouts_dropped", "partial", "stale"),
        ("reason",),
    ),
    Row(
        COUNTER,
        "kubebeast_rollout_padded_steps",
        "Places in the delivered unrolls that hold no step: between two episodes, and after an early end.",
        "rollout_padded_steps",
    ),
    Row(GAUGE, "kubebeast_rollouts_queued", "Finished unrolls that wait for the learner.", "rollouts_queued"),
    Row(
        GAUGE,
        "kubebeast_rollout_queue_capacity",
        "Unrolls that may wait or be played before streams are held back.",
        "rollout_queue_capacity",
    ),
    Row(GAUGE, "kubebeast_rollouts_running", "Unrolls that streams play at the moment.", "rollouts_running"),
    Row(
        HISTOGRAM,
        "kubebeast_rollout_queue_wait_seconds",
        "How long a finished unroll waited for the learner.",
        "rollout_queue_wait",
    ),
)

STREAMS = (
    Row(GAUGE, "kubebeast_streams", "Streams of env-servers.", "streams"),
    Row(GAUGE, "kubebeast_envs", "Environments of all streams.", "envs"),
    Row(GAUGE, "kubebeast_slots", "Environments that fit at once.", "slots"),
    Row(GAUGE, "kubebeast_streams_parked", "Streams held back by a full rollout queue.", "streams_parked"),
    Row(COUNTER, "kubebeast_streams_accepted", "Streams that were welcomed.", "streams_accepted"),
    Row(
        COUNTER,
        "kubebeast_streams_ended",
        "Streams that ended, by reason.",
        _each("streams_ended", "bye", "disconnect", "invalid", "timeout", "dropped", "closed"),
        ("reason",),
    ),
    Row(COUNTER, "kubebeast_streams_refused", "Streams refused at their Hello.", "streams_rejected"),
    Row(
        COUNTER, "kubebeast_streams_unauthenticated", "Streams without a valid bearer token.", "streams_unauthenticated"
    ),
    Row(
        COUNTER,
        "kubebeast_connections_refused",
        "TCP connections without a stream, by what was seen of them (docs/security.md); probes of the port are closed.",
        _each("connections", "blocked", "closed", "silent", "plaintext", "tls", "garbage", "no_call"),
        ("reason",),
    ),
    Row(COUNTER, "kubebeast_dials_failed", "Env-servers dialled in vain.", "dials_failed"),
    Row(COUNTER, "kubebeast_env_interruptions", "Environments that failed under way.", "env_interruptions"),
    Row(COUNTER, "kubebeast_actor_restarts", "Local actor processes started again.", "restarts"),
    Row(COUNTER, "kubebeast_received_messages", "Messages from env-servers.", "messages_received"),
    Row(COUNTER, "kubebeast_received_bytes", "Bytes of messages from env-servers.", "bytes_received"),
    Row(COUNTER, "kubebeast_sent_bytes", "Bytes of messages to env-servers.", "bytes_sent"),
    Row(
        HISTOGRAM,
        "kubebeast_stream_env_seconds",
        "From Actions sent to the next Observations received: the environments, and the way there and back.",
        "stream_env",
    ),
    Row(
        HISTOGRAM,
        "kubebeast_stream_action_seconds",
        "From Observations received to Actions sent, without the time held back: what an env-server waits for here.",
        "stream_action",
    ),
    Row(
        HISTOGRAM,
        "kubebeast_stream_parked_seconds",
        "How long a stream was held back by a full rollout queue.",
        "stream_parked",
    ),
)

INFERENCE = (
    Row(COUNTER, "kubebeast_inference_batches", "Batches that the model acted on.", "inference_batches"),
    Row(COUNTER, "kubebeast_inference_rows", "Rows of those batches.", "inference_rows"),
    Row(HISTOGRAM, "kubebeast_inference_batch_rows", "Rows in a batch.", "inference_batch_rows"),
    Row(
        COUNTER,
        "kubebeast_inference_flushes",
        "Why a batch was given out: min_inference_rows waited, every stream waited, or the oldest row had waited long.",
        {"full": "inference_flush_ready", "all": "inference_flush_all", "timeout": "inference_flush_timeout"},
        ("reason",),
    ),
    Row(COUNTER, "kubebeast_inference_dropped", "Batches that were never answered.", "inference_dropped"),
    Row(GAUGE, "kubebeast_inference_queue_rows", "Rows that wait for a batch.", "rows_waiting"),
    Row(
        HISTOGRAM,
        "kubebeast_inference_queue_wait_seconds",
        "How long a step waited for its batch.",
        "inference_queue_wait",
    ),
    Row(
        HISTOGRAM,
        "kubebeast_inference_seconds",
        "Copying the rows of a batch together, the model, and handing out the actions.",
        _each("inference", "gather", "model", "reply"),
        ("phase",),
    ),
    Row(GAUGE, "kubebeast_inference_threads", "Threads that run the model.", "inference_threads"),
)
