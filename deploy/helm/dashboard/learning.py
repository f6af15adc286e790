"""The row about what the policy achieves."""

from dashboard.grafana import Panel, Query, Row

LEARNING = Row(
    "Is it learning?",
    [
        Panel(
            title="Return of the newest episodes",
            good="Rises, with plateaus; levels off near the task's best. A fall that lasts is worth a look at the row "
            "on data. One task that falls alone: has its group of env-servers changed?",
            unit="short",
            floor=None,
            width=12,
            queries=[
                Query("kubebeast_task_episode_return_mean{%s}", "{{env_id}}"),
                Query("kubebeast_episode_return_mean{%s}", "all tasks"),
            ],
        ),
        Panel(
            title="Length of episodes",
            good="Goes with the return: longer where living pays, shorter where speed does. Constant at the time "
            "limit: the agent may be stuck.",
            unit="short",
            width=6,
            queries=[Query("kubebeast_episode_length_steps_mean{%s}", "mean of the newest, in steps")],
        ),
        Panel(
            title="Episodes",
            good="Finished episodes a second: above 0 for every task. A task at 0 has lost its env-servers, or its "
            "episodes do not end.",
            unit="eps",
            width=6,
            queries=[Query("rate(kubebeast_task_episodes_total{%s}[$__rate_interval])", "{{env_id}}")],
        ),
    ],
    is_open=True,
)
