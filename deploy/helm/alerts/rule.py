"""Building blocks of the rules. All their texts may contain a duration of the pace: see `pace`."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

WHERE = "{{ $labels.namespace }}/{{ $labels.job }}"
"""Name of a release in an annotation."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Alert:
    """A condition that needs attention, with its remedies."""

    severity: Literal["critical", "warning", "info"]
    """critical: nothing is learned, or progress will be lost. warning: slower or worse than necessary. info: cost.
    """
    expr: str
    """PromQL; every sample that it returns fires."""
    hold: str = ""
    """Time for which the condition must hold; "" fires at once."""
    summary: str
    """Fault and place, in a line; a Prometheus template, like `says`."""
    says: str
    """The value in words."""
    meaning: str
    """Meaning of the condition, for any value."""
    panels: Sequence[str]
    """Titles of the dashboard's panels that confirm it."""
    steps: Sequence[str]
    """Remedies, in order."""


def unfinished(expr: str) -> str:
    """Silences the condition after the end of the run: its learner stays up, idle, and its fleet may be removed."""
    condition = f"(\n{_indented(expr)}\n)" if re.search(r"^or\b", expr, re.MULTILINE) else expr
    return f"{condition}\nunless on (cluster, namespace, job) kubebeast_learner_step >= kubebeast_learner_total_steps"


def of_run(expr: str, *labels: str) -> str:
    """Adds the name of the run to samples of the learner, as `run_id`: a release has one run after another.

    labels: labels of a sample beside its target's.
    """
    ignored = ", ".join(("run_id", *labels))
    return f"{expr} * ignoring ({ignored}) group_left (run_id) kubebeast_run_info"


def _indented(expr: str) -> str:
    return "\n".join(f"  {line}" for line in expr.splitlines())
