"""Series that the dashboard, the autoscalers and other rules query by name."""

from alerts.rule import of_run
from dashboard.promql import RELEASE, demand

_RETURN = "kubebeast_task_episode_return_mean"

# Only of the present run, not of earlier ones of the release.
_PRESENT = "and on (cluster, namespace, job, run_id) kubebeast_run_info"

# A level counts as reached if it was held for a whole window until now: the mean of the first few episodes is
# noise, and at the address of an earlier run the window begins with its returns.
_HELD = of_run(f"(min_over_time({_RETURN}[$window]) and {_RETURN} and {_RETURN} offset $window)", "env_id")
_BEST = f"""\
max by (cluster, namespace, job, env_id) (
  max by (cluster, namespace, job, env_id, run_id) (
    max_over_time(({_HELD})[$history:$resolution])
  )
  {_PRESENT}
)"""
_WORST = f"""\
min by (cluster, namespace, job, env_id) (
  min by (cluster, namespace, job, env_id, run_id) (
    min_over_time(({of_run(_RETURN, "env_id")})[$history:$resolution])
  )
  {_PRESENT}
)"""

# Streams that were lost without a Bye; those that move from rank to rank send one. Measured by the learner, which
# receives the Byes.
_MISSED = """\
clamp_min(
  max by (cluster, namespace, job) (
    max_over_time(sum by (cluster, namespace, job) (kubebeast_streams)[$long:$resolution])
    - sum by (cluster, namespace, job) (kubebeast_streams)
  )
  - sum by (cluster, namespace, job) (increase(kubebeast_streams_ended_total{reason="bye"}[$long])),
  0
)
* (sum by (cluster, namespace, job) (increase(kubebeast_streams_ended_total{reason!~"bye|closed"}[$long])) > bool 0)"""

RECORDING = {
    "kubebeast_learner_demand_ratio": demand("$demand", f"{RELEASE}, service", of=""),
    "kubebeast_streams_missed": _MISSED,
    "kubebeast_task_return_best": _BEST,
    "kubebeast_task_return_worst": _WORST,
}
