"""Analysis of the communication in a trace of one of several ranks: sums of gradients, and waiting for them."""

import dataclasses
import json
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl

mpl.use("Agg")
from matplotlib import pyplot as plt

SUM = "gloo:all_reduce"
GRADIENT = "autograd::engine::evaluate_function"
"""Prefix of the events of autograd, one for each node of the backward pass."""
COLOURS = {"forward": "#56b4e9", "backward": "#0072b2", "turn": "#cc79a7", "gradients": "#d55e00", "losses": "#e69f00"}


class Span(NamedTuple):
    start: float
    end: float
    """End in milliseconds of the trace's clock, like the start."""

    @property
    def ms(self) -> float:
        return self.end - self.start

    def within(self, other: "Span") -> float:
        """Returns the milliseconds of overlap with the other span."""
        return max(0.0, min(self.end, other.end) - max(self.start, other.start))


@dataclasses.dataclass(frozen=True, slots=True)
class Update:
    """One update, from the end of the previous one to its own end."""

    whole: Span
    forward: Span
    backward: Span
    """Time from the loss to the last node of the graph, without waiting for sums after it."""
    turn: Sequence[Span]
    """Sum with which ranks agree on a turn, so that a rank waits for slower ones."""
    gradients: Sequence[Span]
    """Sums of the buckets, each from the time at which its gradients are ready."""
    losses: Span
    """Sum of the losses over the global batch."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Communication:
    """Medians over the updates, in milliseconds."""

    update_ms: float
    turn_ms: float
    gradients_ms: float
    hidden_ratio: float
    """Share of the time of the gradients' sums within the backward pass."""
    waited_ms: float
    """Waiting for the gradients' sums after the backward pass."""
    losses_ms: float
    communication_ratio: float
    """Share of an update in which its thread waits for sums: turn, gradients, losses."""


def updates(path: Path) -> list[Update]:
    """Returns the updates of a trace from `--profile` or a Profiler, without the first one."""
    events = [event for event in json.loads(path.read_bytes())["traceEvents"] if event.get("ph") == "X"]
    forwards, phases, sums = (_spans(events, name) for name in ("forward", "backward", SUM))
    nodes = [_span(event) for event in events if event["name"].startswith(GRADIENT)]
    found, since = [], phases[0].end
    for forward, phase in list(zip(forwards, phases, strict=True))[1:]:
        whole = Span(since, phase.end)
        backward = Span(phase.start, max(node.end for node in nodes if node.within(phase) > 0))
        mine = [each for each in sums if whole.start <= each.start < whole.end]
        *gradients, losses = [each for each in mine if each.start >= forward.start]
        found.append(
            Update(
                whole=whole,
                forward=forward,
                backward=backward,
                turn=[each for each in mine if each.start < forward.start],
                gradients=gradients,
                losses=losses,
            )
        )
        since = phase.end
    return found


def communication(found: Sequence[Update]) -> Communication:
    turn, gradients, hidden, waited, losses, idle = [], [], [], [], [], []
    for update in found:
        turn.append(_total(update.turn))
        gradients.append(_total(update.gradients))
        hidden.append(sum(span.within(update.backward) for span in update.gradients) / gradients[-1])
        waited.append(max(0.0, max(span.end for span in update.gradients) - update.backward.end))
        losses.append(update.losses.ms)
        idle.append((turn[-1] + waited[-1] + losses[-1]) / update.whole.ms)
    return Communication(
        update_ms=statistics.median(update.whole.ms for update in found),
        turn_ms=statistics.median(turn),
        gradients_ms=statistics.median(gradients),
        hidden_ratio=statistics.median(hidden),
        waited_ms=statistics.median(waited),
        losses_ms=statistics.median(losses),
        communication_ratio=statistics.median(idle),
    )


def _total(spans: Sequence[Span]) -> float:
    return sum(span.ms for span in spans)


def draw(found: Sequence[Update], path: Path, title: str) -> None:
    """Draws the update of median length: its computation above, its sums below."""
    update = sorted(found, key=lambda each: each.whole.ms)[len(found) // 2]
    figure, chart = plt.subplots(figsize=(10, 2.4), layout="constrained")
    lanes: list[tuple[str, int, Sequence[Span]]] = [
        ("forward", 1, [update.forward]),
        ("backward", 1, [update.backward]),
        ("turn", 0, update.turn),
        ("gradients", 0, update.gradients),
        ("losses", 0, [update.losses]),
    ]
    for name, lane, spans in lanes:
        bars = [(span.start - update.whole.start, span.ms) for span in spans]
        chart.broken_barh(bars, (lane - 0.35, 0.7), color=COLOURS[name], edgecolor="white", label=name)
    chart.set(xlim=(0, update.whole.ms), yticks=[0, 1], yticklabels=["sums over ranks", "computes"])
    chart.set_xlabel("milliseconds of one update")
    chart.set_title(title, loc="left", fontsize=10)
    chart.spines[["top", "right"]].set_visible(False)
    chart.legend(loc="upper center", bbox_to_anchor=(0.5, -0.35), ncols=len(lanes), frameon=False)
    figure.savefig(path, dpi=120)
    plt.close(figure)


def _spans(events: Sequence[dict[str, Any]], name: str) -> list[Span]:
    return sorted(_span(event) for event in events if event["name"] == name)


def _span(event: dict[str, Any]) -> Span:
    start = event["ts"] / 1000
    return Span(start, start + event["dur"] / 1000)
