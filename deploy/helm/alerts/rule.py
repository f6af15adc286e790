"""The words of the rules. Every text of theirs may name a duration of the pace: see `pace`."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

WHERE = "{{ $labels.namespace }}/{{ $labels.job }}"
"""A release in an annotation."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Alert:
    """A condition that somebody should know of, and what they should do."""

    severity: Literal["critical", "warning", "info"]
    """critical: nothing is learnt, or it will be lost. warning: slower or worse than it need be. info: it costs."""
    expr: str
    """PromQL; what it returns, fires."""
    hold: str = ""
    """How long the condition must hold."""
    summary: str
    """What is wrong where, in a line; a template of Prometheus, as says."""
    says: str
    """The value in words."""
    meaning: str
    """What the condition means, whatever the value."""
    panels: Sequence[str]
    """Titles of the dashboard's panels that confirm it."""
    steps: Sequence[str]
    """What to do, in order."""


def unfinished(expr: str) -> str:
    """The condition, silent once the run is finished: its learner stays up, idle, and its fleet may go."""
    condition = f"(\n{_indented(expr)}\n)" if re.search(r"^or\b", expr, re.MULTILINE) else expr
    return f"{condition}\nunless on (cluster, namespace, job) kubebeast_learner_step >= kubebeast_learner_total_steps"


def of_run(expr: str, *labels: str) -> str:
    """Samples of the learner with the name of the run that it trained then, as `run_id`: a release has one run after
    the other. labels: those that a sample has beside its target's.
    """
    ignored = ", ".join(("run_id", *labels))
    return f"{expr} * ignoring ({ignored}) group_left (run_id) kubebeast_run_info"


def _indented(expr: str) -> str:
    return "\n".join(f"  {line}" for line in expr.splitlines())
