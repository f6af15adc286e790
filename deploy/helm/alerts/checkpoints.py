"""Alerts on progress that a crash would lose."""

from alerts.rule import WHERE, Alert, unfinished

_SAVED_AT = "kubebeast_checkpoint_last_success_timestamp_seconds"

CHECKPOINTS = {
    "KubeBeastCheckpointStale": Alert(
        severity="warning",
        # The age is unknown until the first save of a process; the age of the process replaces it. Of several ranks,
        # the first saves.
        # The interval is the mean over the history; without one, three times the default is used.
        expr=unfinished(f"""\
max by (cluster, namespace, job) (
  (kubebeast_checkpoint_age_seconds or time() - process_start_time_seconds{{rank=~"0?"}})
  > (
    3 * ({_SAVED_AT} - min_over_time({_SAVED_AT}[$history]))
    / (changes({_SAVED_AT}[$history]) > 0)
    or 0 * kubebeast_learner_step + 1800
  )
  and delta(kubebeast_learner_step[$window]) > 0
)"""),
        hold="$quick",
        summary=f"The learner of {WHERE} trains without saving.",
        says="The last checkpoint is {{ $value | humanizeDuration }} old.",
        meaning="No checkpoint was saved for three times the usual interval, or for half an hour if there are fewer "
        "than two earlier ones. A crash now loses the training since the last checkpoint.",
        panels=["Age of the last checkpoint", "Checkpoints that failed", "Duration of a checkpoint"],
        steps=[
            "Check for failed checkpoints, and read the learner's log.",
            "If the first checkpoint is due after more than half an hour, see checkpoint_interval_minutes. With "
            "disable_checkpoint, the learner never saves.",
            "For a save that takes minutes, check the volume.",
        ],
    ),
    "KubeBeastCheckpointFailing": Alert(
        severity="critical",
        # Finished runs included: their last checkpoint is their result.
        expr="max by (cluster, namespace, job) (increase(kubebeast_checkpoint_failures_total[$long])) > 0",
        summary=f"The learner of {WHERE} cannot save.",
        says="About {{ $value | humanize }} checkpoints in $long could not be written.",
        meaning="Training continues, and older checkpoints stay.",
        panels=["Checkpoints that failed", "Age of the last checkpoint", "Size of a checkpoint"],
        steps=[
            "Read the error of the file system in the learner's log.",
            "On a full volume, expand the claim, or lower keep_checkpoints.",
            "For a volume that is read-only or gone, check the volume and its node.",
        ],
    ),
    "KubeBeastVolumeFilling": Alert(
        severity="warning",
        # Ten checkpoints, since large disks are never full by share; small runs write more logs than checkpoints.
        expr=unfinished("""\
min by (cluster, namespace, job) (
  kubebeast_run_free_bytes < 10 * kubebeast_checkpoint_bytes
  or kubebeast_run_free_bytes < 0.1 * kubebeast_run_volume_bytes and kubebeast_run_free_bytes < 268435456
)"""),
        hold="$quick",
        summary=f"The volume of the run of {WHERE} is nearly full.",
        says="{{ $value | humanize1024 }}B are free.",
        meaning="Fewer than ten checkpoints fit on the volume, or less than a tenth of a small volume is free. Once "
        "the volume is full, rows of the logs are dropped and checkpoints fail. Training continues, but a crash then "
        "loses the training since the last checkpoint.",
        panels=["Free space of the volume", "Size of a checkpoint"],
        steps=[
            "Expand the claim: [storage](kubernetes.md#storage).",
            "Delete other data on the volume: finished runs, exports, videos.",
            "Lower keep_checkpoints. The next save deletes the older ones.",
        ],
    ),
    "KubeBeastWritesFailing": Alert(
        severity="critical",
        expr="sum by (cluster, namespace, job) (increase(kubebeast_run_write_failures_total[$long])) > 0",
        summary=f"The run of {WHERE} cannot write its files.",
        says="About {{ $value | humanize }} writes failed in $long.",
        meaning="Training continues. Rows of logs.csv and of TensorBoard are lost until the volume accepts writes "
        "again.",
        panels=["Writes that failed", "Free space of the volume", "Checkpoints that failed"],
        steps=[
            "The learner's log contains the first error of the file system, and a line when writes succeed again.",
            "On a full volume, expand the claim or delete data that is not needed. No restart is necessary.",
            "For a volume that is read-only or gone, check the volume and its node. A read-only mount needs a new pod.",
            "A learner that starts meanwhile waits for free space and logs a message. It is healthy, and continues by "
            "itself.",
        ],
    ),
}
