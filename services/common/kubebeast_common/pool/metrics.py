"""Metrics of a native pool: rollouts, streams and inference. Counters start at 0 with the process.

Values come from ActorPool.stats and ActorPool.histograms; `restarts` and `inference_threads` from the pool's user.
"""

from kubebeast_common.metrics import COUNTER, GAUGE, HISTOGRAM, Row


def _each(source: str, *labels: str) -> dict[str, str]:
    """Returns the sources of a metric with one label, e.g. {"sampled": "steps_sampled"}."""
    return {label: f"{source}_{label}" for label in labels}


STEPS = (
    Row(
        COUNTER,
        "kubebeast_steps",
        "Env-steps by outcome. The sampled steps are the sum of all other outcomes and kubebeast_steps_in_flight.",
        _each("steps", "sampled", "delivered", "dropped_partial", "dropped_stale", "dropped_close"),
        ("outcome",),
    ),
    Row(
        GAUGE,
        "kubebeast_steps_in_flight",
        "Env-steps that are sampled but neither delivered nor dropped.",
        "steps_in_flight",
    ),
    Row(COUNTER, "kubebeast_rollouts_completed", "Unrolls of full length.", "rollouts_completed"),
    Row(COUNTER, "kubebeast_rollouts_partial", "Unrolls that the end of their stream cut short.", "rollouts_partial"),
    Row(COUNTER, "kubebeast_rollouts_delivered", "Unrolls that the learner took from the queue.", "rollouts_delivered"),
    Row(
        COUNTER,
        "kubebeast_rollouts_dropped",
        "Dropped unrolls: too short (partial) or too old (stale).",
        _each("rollouts_dropped", "partial", "stale"),
        ("reason",),
    ),
    Row(
        COUNTER,
        "kubebeast_rollout_padded_steps",
        "Positions in delivered unrolls that hold no step: between two episodes, and after an early end.",
        "rollout_padded_steps",
    ),
    Row(GAUGE, "kubebeast_rollouts_queued", "Finished unrolls that wait for the learner.", "rollouts_queued"),
    Row(
        GAUGE,
        "kubebeast_rollout_queue_capacity",
        "Limit of queued and in-progress unrolls. If it is reached, streams are held back.",
        "rollout_queue_capacity",
    ),
    Row(GAUGE, "kubebeast_rollouts_running", "Unrolls in progress.", "rollouts_running"),
    Row(
        HISTOGRAM,
        "kubebeast_rollout_queue_wait_seconds",
        "Time that a finished unroll waited for the learner.",
        "rollout_queue_wait",
    ),
)

STREAMS = (
    Row(GAUGE, "kubebeast_streams", "Streams of env-servers.", "streams"),
    Row(GAUGE, "kubebeast_envs", "Environments of all streams.", "envs"),
    Row(GAUGE, "kubebeast_slots", "Maximum number of environments at the same time.", "slots"),
    Row(GAUGE, "kubebeast_streams_parked", "Streams held back by a full rollout queue.", "streams_parked"),
    Row(COUNTER, "kubebeast_streams_accepted", "Accepted streams.", "streams_accepted"),
    Row(
        COUNTER,
        "kubebeast_streams_ended",
        "Ended streams, by reason.",
        _each("streams_ended", "bye", "disconnect", "invalid", "timeout", "dropped", "closed"),
        ("reason",),
    ),
    Row(COUNTER, "kubebeast_streams_refused", "Streams refused at their Hello.", "streams_rejected"),
    Row(
        COUNTER,
        "kubebeast_streams_unauthenticated",
        "Streams refused because they had no valid bearer token.",
        "streams_unauthenticated",
    ),
    Row(
        COUNTER,
        "kubebeast_connections_refused",
        "TCP connections without a stream, by the reasons of docs/security.md. Probes of the port count as closed.",
        _each(
            "connections",
            *("blocked", "closed", "silent", "plaintext", "tls", "garbage", "no_call", "bytes", "calls", "crowded"),
        ),
        ("reason",),
    ),
    Row(COUNTER, "kubebeast_dials_failed", "Failed attempts to dial an env-server.", "dials_failed"),
    Row(
        COUNTER,
        "kubebeast_env_interruptions",
        "Failures of environments in the middle of an episode.",
        "env_interruptions",
    ),
    Row(COUNTER, "kubebeast_opponent_steps", "Env-steps of opponents, which are not trained on.", "opponent_steps"),
    Row(COUNTER, "kubebeast_actor_restarts", "Restarts of local actor processes.", "restarts"),
    Row(COUNTER, "kubebeast_episode_options", "Options of episodes sent to env-servers.", "options_sent"),
    Row(
        COUNTER,
        "kubebeast_episode_options_repeated",
        "Episodes that began with earlier options, as the curriculum had not chosen others in time.",
        "options_repeated",
    ),
    Row(COUNTER, "kubebeast_received_messages", "Messages from env-servers.", "messages_received"),
    Row(COUNTER, "kubebeast_received_bytes", "Bytes of messages from env-servers.", "bytes_received"),
    Row(COUNTER, "kubebeast_sent_bytes", "Bytes of messages to env-servers.", "bytes_sent"),
    Row(
        HISTOGRAM,
        "kubebeast_stream_env_seconds",
        "Time from Actions sent to the next Observations received: the environments and the network in both "
        "directions.",
        "stream_env",
    ),
    Row(
        HISTOGRAM,
        "kubebeast_stream_action_seconds",
        "Time from Observations received to Actions sent, without the time held back: the learner's part of a step.",
        "stream_action",
    ),
    Row(
        HISTOGRAM,
        "kubebeast_stream_parked_seconds",
        "Time that a stream was held back by a full rollout queue.",
        "stream_parked",
    ),
)

INFERENCE = (
    Row(COUNTER, "kubebeast_inference_batches", "Inference batches.", "inference_batches"),
    Row(COUNTER, "kubebeast_inference_rows", "Rows of all inference batches.", "inference_rows"),
    Row(HISTOGRAM, "kubebeast_inference_batch_rows", "Rows per inference batch.", "inference_batch_rows"),
    Row(
        COUNTER,
        "kubebeast_inference_flushes",
        "Inference batches by reason: min_inference_rows rows waited (full), all streams waited (all), or the oldest "
        "row reached its time limit (timeout).",
        {"full": "inference_flush_ready", "all": "inference_flush_all", "timeout": "inference_flush_timeout"},
        ("reason",),
    ),
    Row(COUNTER, "kubebeast_inference_dropped", "Batches that were never answered.", "inference_dropped"),
    Row(GAUGE, "kubebeast_inference_queue_rows", "Rows that wait for a batch.", "rows_waiting"),
    Row(
        HISTOGRAM,
        "kubebeast_inference_queue_wait_seconds",
        "Time that a step waited for its batch.",
        "inference_queue_wait",
    ),
    Row(
        HISTOGRAM,
        "kubebeast_inference_seconds",
        "Time per inference batch: copying its rows (gather), running the model (model), distributing the actions "
        "(reply).",
        _each("inference", "gather", "model", "reply"),
        ("phase",),
    ),
    Row(GAUGE, "kubebeast_inference_threads", "Threads that run the model.", "inference_threads"),
)
