"""The row about what the policy achieves."""

from dashboard.grafana import Panel, Panels
from dashboard.promql import of_release, rate

LEARNING: Panels = {
    "Return of the newest episodes": Panel(
        good="Rises, with plateaus; levels off near the task's best. A fall that lasts is worth a look at the row on "
        "data. One task that falls alone: has its group of env-servers changed?",
        floor=None,
        width=12,
        queries={
            "{{env_id}}": of_release("kubebeast_task_episode_return_mean{%s}", "env_id"),
            "all tasks": of_release("kubebeast_episode_return_mean{%s}"),
        },
    ),
    "Env-steps of each task": Panel(
        good="In the proportions of task_shares, however fast the env-servers are. Empty where there is one task. One "
        "at 0 has no env-servers: its share goes to the others.",
        width=12,
        queries={"{{env_id}}": of_release(rate("kubebeast_task_steps_total"), "env_id")},
    ),
    "Length of episodes": Panel(
        good="Goes with the return: longer where living pays, shorter where speed does. Constant at the time limit: "
        "the agent may be stuck.",
        width=12,
        queries={"mean of the newest, in steps": of_release("kubebeast_episode_length_steps_mean{%s}")},
    ),
    "Episodes": Panel(
        good="Finished episodes a second: above 0 for every task. A task at 0 has lost its env-servers, or its "
        "episodes do not end.",
        unit="eps",
        width=12,
        queries={"{{env_id}}": rate("kubebeast_task_episodes_total")},
    ),
}
