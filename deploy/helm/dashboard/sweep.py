"""The row about the runs of a sweep, which share one fleet."""

from dashboard.grafana import Panel, Panels
from dashboard.promql import of_release, rate, total

RUN = "kubebeast_run"

SWEEP: Panels = {
    "Return of each run": Panel(
        good="Good: curves separate early, so that the sweep ends the poor ones. Outside a sweep, one curve without a "
        "name.",
        floor=None,
        queries={"{{kubebeast_run}}": of_release("kubebeast_episode_return_mean{%s}", RUN)},
    ),
    "Env-steps of each run": Panel(
        good="Env-steps per second. Good: in the proportions of the weights. A run far below may be limited by its "
        "learner.",
        queries={"{{kubebeast_run}}": total(rate("kubebeast_steps_total", 'outcome="sampled"'), RUN)},
    ),
    "Streams of each run": Panel(
        good="Streams that play for each run, as their mean over time, at the broker. Good: in the proportions of the "
        "weights; less for a run that can use no more. Empty without a broker.",
        queries={"{{run_id}}": of_release(rate("kubebeast_broker_run_stream_seconds_total"), "run_id")},
    ),
}
