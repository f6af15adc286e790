"""Metrics of the learner, its episodes and its checkpoints.

Values are the newest Snapshot's, the phases of updates, and the durations of checkpoints.
"""

from kubebeast_common.metrics import COUNTER, GAUGE, HISTOGRAM, Row
from kubebeast_learner.profiling.phases import PHASES

LEARNER = (
    # Gauges: a resumed learner goes back to the newest checkpoint.
    Row(GAUGE, "kubebeast_learner_step", "Env-steps trained on, since the first start of the run.", "step"),
    Row(GAUGE, "kubebeast_learner_total_steps", "Env-steps at which the run ends.", "total_steps"),
    Row(
        GAUGE,
        "kubebeast_learner_steps_per_second",
        "Env-steps trained on per second, over the last half minute.",
        "sps",
    ),
    Row(
        GAUGE,
        "kubebeast_learner_starved_ratio",
        "Share of the last half minute that the learner waited for rollouts. At 1, the fleet is far too small.",
        "starved_ratio",
    ),
    Row(
        COUNTER,
        "kubebeast_task_steps",
        "Env-steps of the task that were trained on, for tasks in task_shares.",
        "task_steps",
        ("env_id",),
    ),
    Row(COUNTER, "kubebeast_learner_waiting_seconds", "Time that the learner waited for rollouts.", "waited_s"),
    Row(
        GAUGE,
        "kubebeast_inference_busy_ratio",
        "Share of the last half minute that the inference threads worked. At 1, the model is too slow for the fleet.",
        "inference_busy_ratio",
    ),
    Row(COUNTER, "kubebeast_updates", "Updates of the weights.", "process_updates"),
    Row(
        COUNTER,
        "kubebeast_updates_skipped",
        "Updates skipped because their loss or gradient was not finite.",
        "process_skipped_updates",
    ),
    Row(
        COUNTER,
        "kubebeast_empty_shares",
        "With several learners, updates that this one joined without a batch of its own.",
        "empty_shares",
    ),
    Row(GAUGE, "kubebeast_run_updates", "Updates of the weights, since the first start of the run.", "num_updates"),
    Row(
        GAUGE,
        "kubebeast_run_updates_skipped",
        "Skipped updates, since the first start of the run.",
        "num_skipped_updates",
    ),
    Row(
        HISTOGRAM,
        "kubebeast_update_seconds",
        "Time of each phase of an update, as measured on the host.",
        {phase: f"update_{phase}" for phase in PHASES},
        ("phase",),
    ),
    Row(
        GAUGE,
        "kubebeast_run_crashes",
        "Processes of the run that were killed or failed, since the first start of the run. A process that shut down "
        "after a signal does not count.",
        "num_crashes",
    ),
    Row(GAUGE, "kubebeast_policy_version", "Number of updates of the newest weights.", "version"),
    Row(
        GAUGE,
        "kubebeast_policy_lag_updates",
        "Mean age of the weights that acted, in updates, over the last half minute.",
        "policy_lag",
    ),
    Row(
        GAUGE,
        "kubebeast_loss",
        "Loss of the last update and its parts, weighted by their costs.",
        {"total": "total_loss", "policy_gradient": "pg_loss", "baseline": "baseline_loss", "entropy": "entropy_loss"},
        ("part",),
    ),
    Row(GAUGE, "kubebeast_loss_part", "Part of a loss of your own in the last batch.", "loss_parts", ("part",)),
    Row(GAUGE, "kubebeast_policy_entropy_nats", "Mean entropy of the policy in the last batch.", "entropy"),
    Row(GAUGE, "kubebeast_gradient_norm", "Global norm of the last gradient, before clipping.", "grad_norm"),
    Row(GAUGE, "kubebeast_rho_mean", "Mean importance weight in the last batch, before clipping.", "mean_rho"),
    Row(
        GAUGE,
        "kubebeast_rho_clipped_ratio",
        "Share of importance weights in the last batch that were clipped.",
        "clipped_rho",
    ),
    Row(GAUGE, "kubebeast_learning_rate", "Learning rate of the last update.", "learning_rate"),
)

EPISODES = (
    Row(COUNTER, "kubebeast_episodes", "Finished episodes.", "process_episodes"),
    Row(GAUGE, "kubebeast_run_episodes", "Finished episodes, since the first start of the run.", "episodes"),
    Row(
        GAUGE,
        "kubebeast_episode_return_mean",
        "Mean unclipped return of the newest episodes; with several tasks, the mean over the tasks.",
        "mean_episode_return",
    ),
    Row(GAUGE, "kubebeast_episode_length_steps_mean", "Mean length of the newest episodes.", "mean_episode_step"),
    Row(
        GAUGE,
        "kubebeast_episode_info_mean",
        "Mean over the newest episodes of a number in their last info, for the keys in log_info.",
        "episode_infos",
        ("key",),
    ),
    Row(
        GAUGE,
        "kubebeast_curriculum",
        "Numbers of the curriculum by name, such as the mean return over its levels.",
        "curriculum",
        ("number",),
    ),
    Row(
        GAUGE,
        "kubebeast_league",
        "Numbers of the league of opponents by name: the Elo rating of the policy, its mean score against the "
        "versions, and their number.",
        "league",
        ("number",),
    ),
)

CHECKPOINTS = (
    Row(GAUGE, "kubebeast_checkpoint_age_seconds", "Time since the last checkpoint.", "checkpoint_age_s"),
    Row(
        GAUGE,
        "kubebeast_checkpoint_last_success_timestamp_seconds",
        "Time at which the last checkpoint was saved, in seconds since 1970.",
        "checkpoint_time_s",
    ),
    Row(GAUGE, "kubebeast_checkpoint_bytes", "Size of the last checkpoint.", "checkpoint_bytes"),
    Row(HISTOGRAM, "kubebeast_checkpoint_seconds", "Time to save a checkpoint.", "checkpoint_seconds"),
    Row(COUNTER, "kubebeast_checkpoint_failures", "Checkpoints that could not be saved.", "checkpoint_failures"),
    Row(
        COUNTER,
        "kubebeast_node_notices",
        "Notices that the node of a learner is about to go, each followed by a checkpoint.",
        "node_notices",
    ),
    Row(COUNTER, "kubebeast_node_notice_failures", "Polls for such notices that failed.", "node_notice_failures"),
)

FILES = (
    Row(
        GAUGE,
        "kubebeast_run_free_bytes",
        "Free bytes for the learner on the volume of the run's folder.",
        "run_free_bytes",
    ),
    Row(GAUGE, "kubebeast_run_volume_bytes", "Size of that volume.", "run_volume_bytes"),
    Row(
        COUNTER,
        "kubebeast_run_write_failures",
        "Failed writes into the run's folder and to trackers, by file or tracker. Each is a dropped row for logs.csv, "
        "tensorboard and trackers, and a dropped message for out.log; other files are written later. "
        "recording and recording/dropped count files and batches that a recording lacks.",
        "write_failures",
        ("file",),
    ),
)

TRAINING = (*LEARNER, *EPISODES, *CHECKPOINTS, *FILES)
