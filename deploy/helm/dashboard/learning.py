"""The row about the returns of the policy."""

from dashboard.grafana import Panel, Panels
from dashboard.promql import of_release, rate

LEARNING: Panels = {
    "Return of the newest episodes": Panel(
        good="Good: rises, with plateaus, and levels off near the best of the task. If it falls and stays down, look "
        "at the row about data. If only one task falls, check whether its group of env-servers has changed.",
        floor=None,
        width=12,
        queries={
            "{{env_id}}": of_release("kubebeast_task_episode_return_mean{%s}", "env_id"),
            "all tasks": of_release("kubebeast_episode_return_mean{%s}"),
        },
    ),
    "Env-steps of each task": Panel(
        good="Good: in the proportions of task_shares, regardless of the speed of the env-servers. Empty if there is "
        "only one task. A task at 0 has no env-servers, and its share goes to the other tasks.",
        width=12,
        queries={"{{env_id}}": of_release(rate("kubebeast_task_steps_total"), "env_id")},
    ),
    "Length of episodes": Panel(
        good="Good: follows the return. Episodes get longer if survival pays, and shorter if speed pays. If the "
        "length is constant at the time limit, the agent may be stuck.",
        width=12,
        queries={"mean of the newest, in steps": of_release("kubebeast_episode_length_steps_mean{%s}")},
    ),
    "Episodes": Panel(
        good="Finished episodes per second. Good: above 0 for every task. A task at 0 has lost its env-servers, or "
        "its episodes do not end.",
        unit="eps",
        width=12,
        queries={"{{env_id}}": rate("kubebeast_task_episodes_total")},
    ),
    "Numbers of the environment": Panel(
        good="Means over the newest episodes of the numbers that log_info names, such as a success rate. Empty without "
        "log_info, and for a key that no episode has.",
        floor=None,
        width=8,
        queries={"{{key}}": of_release("kubebeast_episode_info_mean{%s}", "key")},
    ),
    "Curriculum": Panel(
        good="Numbers of the curriculum. Good: mean_return, over all levels with equal weights, rises. Empty without "
        "a curriculum.",
        floor=None,
        width=8,
        queries={"{{number}}": of_release("kubebeast_curriculum{%s}", "number")},
    ),
    "Elo rating": Panel(
        good="Rating of the policy in its league of earlier versions; that of the untrained one is 1000. Good: rises. "
        "Empty without opponents.",
        floor=None,
        width=8,
        queries={"{{number}}": of_release('kubebeast_league{%s,number="elo"}', "number")},
    ),
}
