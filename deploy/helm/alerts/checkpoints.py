"""Alerts on what a crash would lose."""

from alerts.rule import WHERE, Alert, unfinished

_SAVED_AT = "kubebeast_checkpoint_last_success_timestamp_seconds"

CHECKPOINTS = {
    "KubeBeastCheckpointStale": Alert(
        severity="warning",
        # The age is unknown until a process has saved for the first time; that of the process stands in for it. Of
        # several ranks the first saves.
        # The interval is the mean of those within the history; until there is one, three times the default counts.
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
        meaning="That is three times the interval of the checkpoints before it, or half an hour where there were less "
        "than two. A crash now loses as much.",
        panels=["Age of the last checkpoint", "Checkpoints that failed", "Duration of a checkpoint"],
        steps=[
            "Failed checkpoints, and the learner's log.",
            "A first checkpoint that is due later than half an hour: checkpoint_interval_minutes; disable_checkpoint "
            "saves never.",
            "A save that takes minutes: the volume.",
        ],
    ),
    "KubeBeastCheckpointFailing": Alert(
        severity="critical",
        # Of a finished run too: its last checkpoint is what it was for.
        expr="max by (cluster, namespace, job) (increase(kubebeast_checkpoint_failures_total[$long])) > 0",
        summary=f"The learner of {WHERE} cannot save.",
        says="About {{ $value | humanize }} checkpoints in $long could not be written.",
        meaning="Training goes on, older checkpoints stay.",
        panels=["Checkpoints that failed", "Age of the last checkpoint", "Size of a checkpoint"],
        steps=[
            "The learner's log has the error of the file system.",
            "Volume full: expand the claim, or lower keep_checkpoints.",
            "Read-only or gone: the volume and its node.",
        ],
    ),
}
