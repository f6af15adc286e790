"""Drawing of a fleet on the terminal."""

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.filesize import decimal
from rich.text import Text

from kubebeast_observe.fleet.state import FleetState, GroupState, PodState
from kubebeast_observe.numbers import age_text, number_text, total
from kubebeast_observe.table import Cells, draw_table

PASSING = ("Running", "Pending", "ContainerCreating", "PodInitializing", "Terminating", "Init:PodInitializing")
"""Normal transient statuses of pods."""
COMPLETED = "Completed"
"""Status of a pod that has ended well."""
MIN_PODS = 3
"""Minimum number of pods shown of every group, for any height of the terminal."""
COLUMNS = ("name", "status", "restarts", "last exit", "streams", "steps/s", "node", "age")
DISPENSABLE = ("node", "age", "last exit")
"""Columns that a narrow terminal omits, in this order."""


def draw(state: FleetState, width: int, height: int | None = None) -> RenderableType:
    """Draws a row for each learner, group and pod, and the notes below.

    Args:
        width: Columns of the terminal.
        height: Maximum number of lines; None: as many as needed.
    """
    rows: list[Cells] = []
    for release in dict.fromkeys(pod.release for pod in state.learners):
        learners = [pod for pod in state.learners if pod.release == release]
        rows += [_learners_row(learners, state), *map(_pod_row, learners)]
    for group in state.groups:
        shown = _most_telling(group.pods, _pods_a_group(state, height))
        rows += [_group_row(group, state), *map(_pod_row, shown)]
        if len(shown) < len(group.pods):
            rows.append({"name": Text(f"  {len(group.pods) - len(shown):,} more", style="dim")})
    notes = [Text(note, style="yellow") for note in state.notes]
    table = [draw_table(COLUMNS, DISPENSABLE, rows, width, fold=True)] if rows else []
    return Group(Text(f"namespace {state.namespace}", style="dim"), *table, *notes)


def _learners_row(learners: Sequence[PodState], state: FleetState) -> Cells:
    """Returns the title row of a release's learners: their common progress, and their totals if there are several."""
    first = max(learners, key=lambda pod: pod.reading.step or 0)
    step, total_steps = first.reading.step, first.reading.total_steps
    progress = "" if step is None or total_steps is None else f"step {step:,} of {total_steps:,}"
    if first.reading.free_bytes is not None:
        progress += f"  {decimal(first.reading.free_bytes)} free"
    name = "learner" if len(learners) == 1 else f"{len(learners)} learners"
    title = {"name": _title(name + _of_release(first.release, state), progress)}
    if len(learners) == 1:
        return title
    streams = total(pod.reading.streams for pod in learners)
    steps_per_second = total(pod.reading.steps_per_second for pod in learners)
    return title | {
        "streams": Text(number_text(streams), style="bold"),
        "steps/s": Text(number_text(steps_per_second), style="bold"),
    }


def _group_row(group: GroupState, state: FleetState) -> Cells:
    return {
        "name": _title(group.group + _of_release(group.release, state), f"deployment {group.deployment}"),
        "status": Text(
            f"{group.ready}/{group.desired} ready", style="green" if group.ready >= group.desired else "yellow"
        ),
        "restarts": Text(f"{group.restarts:,}", style="bold"),
        "streams": Text(number_text(group.streams), style="bold"),
        "steps/s": Text(number_text(group.steps_per_second), style="bold"),
    }


def _pod_row(pod: PodState) -> Cells:
    status = "ready" if pod.is_ready else "not ready" if pod.status == "Running" else pod.status
    style = "green" if pod.is_ready or pod.status == COMPLETED else "yellow" if pod.status in PASSING else "red"
    return {
        "name": Text(f"  {pod.name}" + (f" rank {pod.reading.rank}" if pod.reading.rank else "")),
        "status": Text(status, style=style),
        "restarts": Text(f"{pod.restarts:,}"),
        "last exit": Text(pod.last_exit),
        "streams": Text(number_text(pod.reading.streams)),
        "steps/s": Text(number_text(pod.reading.steps_per_second)),
        "node": Text(pod.node or "-"),
        "age": Text(age_text(pod.age_s)),
    }


def _title(name: str, remark: str) -> Text:
    return Text.assemble((name, "bold"), "  ", (remark, "dim"))


def _of_release(release: str, state: FleetState) -> str:
    """Returns the release's name for a title if there are several releases."""
    return f" of {release}" if release and state.num_releases > 1 else ""


def _pods_a_group(state: FleetState, height: int | None) -> int | None:
    """Returns the number of pods of each group that fit; None: all."""
    if height is None or not state.groups:
        return None
    fixed = 2 + 2 * len(state.learners) + 2 * len(state.groups) + len(state.notes)
    return max(MIN_PODS, (height - fixed) // len(state.groups))


def _most_telling(pods: Sequence[PodState], limit: int | None) -> Sequence[PodState]:
    """Returns at most `limit` pods: unready and often restarted ones first."""
    if limit is None or len(pods) <= limit:
        return pods
    return sorted(pods, key=lambda pod: (pod.is_ready, -pod.restarts, pod.name))[:limit]
