"""Drawing of a view: progress, verdict, waiting times, and the env-servers below."""

import datetime

from rich.console import Group, RenderableType
from rich.filesize import decimal
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from kubebeast_observe.numbers import age_text, number_text, time_text
from kubebeast_observe.top.ranks import MAX_RANKS, draw_ranks
from kubebeast_observe.top.rows import Order, sorted_rows
from kubebeast_observe.top.table import draw_rows
from kubebeast_observe.top.tasks import MAX_ROWS, draw_tasks
from kubebeast_observe.top.verdict import PARKED, STARVED
from kubebeast_observe.top.view import Spread, View

BAR_WIDTH = 16
NARROW = 90
"""Columns below which the numbers are placed under the bars instead of beside them."""
STYLES = {"balanced": "bold green", "finished": "bold green", "unknown": "dim"}
GIB = 1 << 30
QUEUE = "rollout queue"
MAX_GPUS = 4
"""Maximum number of GPUs with a bar."""
NEVER = 2.0
"""Threshold of a share that is never highlighted."""
ALWAYS = 0.0


def draw(
    view: View, order: Order, width: int, height: int | None = None, *, streams: bool = False, keys: str = ""
) -> RenderableType:
    """Draws a view.

    Args:
        width: Columns of the terminal.
        height: Maximum number of lines; None: as many as needed.
        keys: Help text for the keys.
    """
    head: list[RenderableType] = [*_title(view, width), _progress(view, width), Text()]
    numbers, num_lines = _numbers(view, width)
    if view.tasks:
        numbers += [Text(), draw_tasks(view.tasks, width)]
        num_lines += 2 + min(len(view.tasks), MAX_ROWS)
    if view.ranks:
        numbers += [Text(), draw_ranks(view.ranks, width)]
        num_lines += 2 + min(len(view.ranks), MAX_RANKS)
    foot = [Text(), Text(keys, style="dim", no_wrap=True)] if keys else []
    on_screen = height is not None  # a folded line would push the last one off the screen
    troubles = ", ".join(f"{name}: {count:,.0f}" for name, count in view.troubles.items())
    notes = [Text(note, style="yellow", no_wrap=on_screen) for note in ([troubles] if troubles else []) + view.notes]
    taken = len(head) + num_lines + len(notes) + 1 + len(foot)
    body: list[RenderableType] = [Text()]
    if view.env_servers:
        left = None if height is None else height - taken
        body.append(draw_rows(sorted_rows(view.env_servers, order), width, left, streams=streams))
    return Group(*head, *numbers, *notes, *body, *foot)


def _title(view: View, width: int) -> list[Text]:
    """Returns the run and its verdict; the advice is beside them, or below if it does not fit."""
    name, source = (view.run_id or "learner", "bold"), (f"  {view.source}  ", "dim")
    verdict = (view.verdict.text, STYLES.get(view.verdict.code, "bold yellow"))
    title = Text.assemble(name, source, verdict, no_wrap=True, overflow="ellipsis")
    advice = Text(view.verdict.advice, style="dim", no_wrap=True, overflow="ellipsis")
    if title.cell_len + 2 + advice.cell_len <= width:
        return [title.append("  ").append_text(advice)]
    return [title, advice]


def _progress(view: View, width: int) -> RenderableType:
    line = Table.grid(padding=(0, 2, 0, 0))
    step, total = view.step, view.total_steps
    cells: list[RenderableType] = [f"step {number_text(step)} of {number_text(total)}"]
    if step is not None and total:
        cells += [
            ProgressBar(total=total, completed=min(step, total), width=BAR_WIDTH, complete_style="cyan"),
            f"{step / total:.0%}",
        ]
    cells.append(f"{number_text(view.steps_per_second)} steps/s")
    eta = "-" if view.eta_s is None else str(datetime.timedelta(seconds=round(min(view.eta_s, 1e9))))
    if width >= NARROW:
        cells.append(f"{eta} left")
    cells.append(Text.assemble("return ", (number_text(view.episode_return_mean, ",.2f"), "bold")))
    for _ in cells:
        line.add_column(no_wrap=True)
    line.add_row(*cells)
    return line


def _numbers(view: View, width: int) -> tuple[list[RenderableType], int]:
    """Returns bars of the waiting times on the left, numbers on the right or below, and the number of lines."""
    bars = Table.grid(padding=(0, 2, 0, 0))
    for justify in ("left", "left", "right"):
        bars.add_column(justify=justify)
    for name, ratio, threshold in _bars(view):
        style = "yellow" if ratio is not None and ratio >= threshold else "green"
        bar = ProgressBar(
            total=1.0, completed=ratio or 0.0, width=BAR_WIDTH, complete_style=style, finished_style=style
        )
        share = "-" if ratio is None else "full" if name == QUEUE and ratio >= 1 else f"{ratio:.0%}"
        bars.add_row(Text(name), bar, share)
    values = Table.grid(padding=(0, 2, 0, 0))
    for left, right in zip(_values(view)[::2], _values(view)[1::2], strict=True):
        values.add_row(Text(left[0], style="dim"), left[1], Text(right[0], style="dim"), right[1])
    if width < NARROW:
        return [bars, values], bars.row_count + values.row_count
    both = Table.grid(padding=(0, 4, 0, 0))
    both.add_row(bars, values)
    return [both], max(bars.row_count, values.row_count)


def _bars(view: View) -> list[tuple[str, float | None, float]]:
    """Returns name, share, and the share from which it is highlighted."""
    queued, room = view.rollouts_queued, view.rollout_queue_room
    fill = None if queued is None or room is None else 1.0 if queued >= room else queued / room
    # A stage that works all the time is normal, unless it is the bottleneck.
    limit = {view.verdict.code: ALWAYS}
    return [
        ("learner waits", view.starved_ratio, STARVED),
        ("inference busy", view.inference_busy_ratio, limit.get("inference", NEVER)),
        ("CPU busy", view.cpu_busy_ratio, limit.get("cpu", NEVER)),
        ("streams parked", view.parked_ratio, PARKED),
        (QUEUE, fill, 1.0),
        *((f"GPU {gpu.device} busy"[:24], gpu.busy_ratio, NEVER) for gpu in view.gpus[:MAX_GPUS]),
    ]


def _values(view: View) -> list[tuple[str, str]]:
    """Returns names and values, two to a line."""
    slots = "" if view.slots is None else f" of {view.slots:,.0f}"
    age = "-" if view.checkpoint_age_s is None else age_text(view.checkpoint_age_s)
    used = [gpu.memory_used_bytes for gpu in view.gpus if gpu.memory_used_bytes is not None]
    queued = f"{number_text(view.rollouts_queued)}, full at {number_text(view.rollout_queue_room)}"
    return [
        ("streams", number_text(view.streams)),
        ("environments", number_text(view.envs) + slots),
        ("rows per batch", number_text(view.rows_per_batch, ".1f")),
        ("rollouts queued", queued),
        ("batch wait p50, p99", _spread(view.inference_queue_wait)),
        ("policy lag", number_text(view.policy_lag_updates, ".1f")),
        ("model time p50, p99", _spread(view.inference_model)),
        ("rho clipped", number_text(view.rho_clipped_ratio, ".1%")),
        ("entropy in nats", number_text(view.policy_entropy_nats, ".3f")),
        ("checkpoint age", age),
        ("steps dropped", number_text(view.steps_dropped)),
        ("episodes", number_text(view.episodes)),
        ("free on run's volume", "-" if view.run_free_bytes is None else decimal(view.run_free_bytes)),
        ("GPU memory", f"{sum(used) / GIB:.1f} GiB" if used else "-"),
    ]


def _spread(spread: Spread) -> str:
    if spread.p50_s is None and spread.p99_s is None:
        return "-"
    return f"{time_text(spread.p50_s)}, {time_text(spread.p99_s)}"
