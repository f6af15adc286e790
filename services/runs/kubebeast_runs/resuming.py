"""Settings that a resumed run may change, and the effects of a change."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Resuming:
    """Group of settings with one rule for resumes."""

    settings: tuple[str, ...]
    may_change: bool
    reason: str
    """Effect of a change, or reason for the lack of one; a sentence at the end of a table row."""


def _alike(settings: str, may_change: bool, reason: str) -> Resuming:
    return Resuming(tuple(settings.split()), may_change, reason)


RESUMING = (
    _alike("env preset env_kwargs wrappers time_limit", False, "They define the task of the run."),
    _alike("task_shares", False, "The weights have a place for each task. Only the shares may change."),
    _alike(
        "model model_options encoder encoder_options image_layout use_lstm reward_input last_action_input task_input "
        "hidden_sizes separate_baseline normalise_observations normalise_images normalise_off_scale normalise_values "
        "bounded_actions log_std_init initialisation",
        False,
        "They determine the shapes and the initial values of the weights.",
    ),
    _alike("optimizer optimizer_options", False, "Another optimizer cannot use its running averages."),
    _alike("seed", False, "It determines the initial weights and distinguishes the runs of one experiment."),
    _alike("xpid savedir", True, "They name the run: a folder that was moved or copied can be resumed."),
    _alike("init_from fork_from", True, "Only a new run reads it."),
    _alike("from_recording recording_passes", True, "Training goes on after as many batches as there were updates."),
    _alike("stop_at_return max_hours", True, "A run that they have ended goes on if they are changed or omitted."),
    _alike("total_steps schedule_steps", True, "Schedules follow the new length from the current step on."),
    _alike(
        "learning_rate learning_rate_schedule learning_rate_final learning_rate_warmup_steps entropy_cost "
        "entropy_schedule entropy_cost_final",
        True,
        "Their schedules start at step 0 and continue from the current step.",
    ),
    _alike(
        "alpha momentum epsilon grad_norm_clipping",
        True,
        "From the next update on; the optimizer keeps its running averages. If momentum was 0, its buffer starts at 0.",
    ),
    _alike(
        "loss loss_options discounting baseline_cost reward_scale reward_clipping normalise_advantages loss_reduction "
        "clip_rho_threshold clip_c_threshold clip_pg_rho_threshold clip_policy_ratio vtrace_lambda",
        True,
        "From the next update on. The baseline first has to adapt to a new discounting, scale or clipping of rewards.",
    ),
    _alike("unroll_length batch_size wait_for_updates", True, "Unfinished unrolls are repeated in any case."),
    _alike("passes minibatches", True, "From the next update on."),
    _alike(
        "curriculum curriculum_options levels",
        True,
        "From the next episodes on; levels that stay keep their results, if the curriculum does.",
    ),
    _alike(
        "opponents newest_share league_interval league_size",
        True,
        "From the next episodes on; the league of before goes on, if there was one.",
    ),
    _alike("replay_share replay_capacity", True, "The replay is empty after every resume."),
    _alike(
        "device inference_device precision deterministic compile cuda_graphs learner_threads",
        True,
        "They change only the hardware and the arithmetic of the run.",
    ),
    _alike(
        "num_actors num_servers num_learners num_actor_processes num_buffers env_timeout_s lag",
        True,
        "Environments begin new episodes in any case.",
    ),
    _alike(
        "max_learner_queue_size max_policy_lag min_partial_steps num_inference_threads min_inference_rows "
        "max_inference_rows inference_timeout_ms address dial tls_cert tls_key tls_ca token_file max_offences "
        "max_streams max_envs max_envs_per_stream max_message_mib handshake_timeout_s step_timeout_s share_timeout_s "
        "rank_timeout_s broker broker_tls_ca broker_weight advertise_address",
        True,
        "Env-servers dial the learner again in any case.",
    ),
    _alike(
        "disable_checkpoint checkpoint_interval_minutes keep_checkpoints keep_best best_by best_evaluator "
        "node_notice log_interval_s progress tracker tracker_options callback callback_options record record_shard_mib "
        "record_max_gib log_info log_level log_format profile http_address trace_endpoint trace_interval_s linger "
        "linger_s stop_status wait_for_run",
        True,
        "They control files, logs and monitoring.",
    ),
)
"""All settings of the commands that train, each once."""

FIXED = tuple(name for group in RESUMING if not group.may_change for name in group.settings)
"""Settings that a resumed run keeps."""
WATCHING = RESUMING[-1].settings
"""Settings for files, logs and monitoring, without an effect on training."""
