"""Series that the dashboard, the autoscalers and other rules ask for by name."""

from alerts.rule import Group, Record

_RETURN = "kubebeast_task_episode_return_mean"

# How many times the present fleet the learner could use. A learner that waits a share s of the time could use
# 1 / (1 - s) fleets (ten at most); one that holds back a share p of the streams needs 1 - p of the fleet.
# 0 once the run has finished. The autoscaling templates of the chart ask for the same.
_DEMAND = """\
max by (namespace, job, service) (
  (kubebeast_learner_step < bool kubebeast_learner_total_steps)
  * (1 - avg_over_time(kubebeast_streams_parked[$demand]) / clamp_min(avg_over_time(kubebeast_streams[$demand]), 1))
  / (1 - clamp_max(kubebeast_learner_starved_ratio, 0.9))
)"""

# A level counts as reached when a whole window held it: the mean of the first few episodes is luck.
_BEST = f"""\
max by (namespace, job, env_id) (
  max_over_time((min_over_time({_RETURN}[$window]) and {_RETURN} offset $window)[$history:$resolution])
)"""

# Streams that there were and are not, without those that said Bye. Counted by the learner, which hears the goodbyes.
_MISSED = """\
clamp_min(
  max by (namespace, job) (max_over_time(kubebeast_streams[$long]) - kubebeast_streams)
  - sum by (namespace, job) (increase(kubebeast_streams_ended_total{reason="bye"}[$long])),
  0
)
* (sum by (namespace, job) (increase(kubebeast_streams_ended_total{reason!~"bye|closed"}[$long])) > bool 0)"""

RECORDING = Group(
    "kubebeast.recording",
    [
        Record(name="kubebeast_learner_demand_ratio", expr=_DEMAND),
        Record(name="kubebeast_streams_missed", expr=_MISSED),
        Record(name="kubebeast_task_return_best", expr=_BEST),
        Record(
            name="kubebeast_task_return_worst",
            expr=f"min by (namespace, job, env_id) (min_over_time({_RETURN}[$history]))",
        ),
    ],
)
