"""How fast other systems do the same work on this machine: Pong, four frames a step in stacks of four 84x84 images, the
shallow network, training included.

    python -m benchmarks.peers --torchbeast ../torchbeast

Each system is installed from its public package into a venv of its own, and trains with settings of its kind; that of
each stands in benchmarks/peers/programs. In a round all of them run, one after the other; the figures are medians over
the rounds, and the ratio that counts is within a round. What cannot run here has the reason instead of numbers.
"""

import dataclasses
import statistics
import sys

import matplotlib as mpl
import tyro

from benchmarks import report
from benchmarks.peers import measure, venvs
from benchmarks.peers.peer import PEERS, Peer
from benchmarks.peers.settings import Settings

mpl.use("Agg")
from matplotlib import pyplot as plt


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    system: str
    steps_per_s: float | None = None
    """Median over the rounds, as all that follow."""
    ratio: float | None = None
    """To the fastest other system of the same round; of other systems to KubeBeast's slowest."""
    frames_per_core_s: float | None = None
    """Frames of the game for each second of CPU time."""
    memory_mib: float | None = None
    """Largest sum of proportional set sizes."""
    cores_used_by_others: float | None = None
    """Far from 0, the figures say little."""
    note: str = ""


Round = dict[str, measure.Measurement]


def is_own(system: str) -> bool:
    return system.startswith("kubebeast")


def ratio(system: str, round_: Round) -> float | None:
    """Of KubeBeast: to the fastest other system. Of another system: to KubeBeast's slowest way to train."""
    others = {name: run.steps_per_s for name, run in round_.items() if is_own(name) != is_own(system)}
    if not others or system not in round_:
        return None
    return round_[system].steps_per_s / (max(others.values()) if is_own(system) else min(others.values()))


def summarise(peer: Peer, rounds: list[Round], failure: str) -> Row:
    """Medians; a system without a single measurement has its failure instead."""
    runs = [round_[peer.name] for round_ in rounds if peer.name in round_]
    if not runs:
        return Row(system=peer.name, note=failure)
    ratios = [each for round_ in rounds if (each := ratio(peer.name, round_)) is not None]
    return Row(
        system=peer.name,
        steps_per_s=statistics.median(run.steps_per_s for run in runs),
        ratio=statistics.median(ratios) if ratios else None,
        frames_per_core_s=statistics.median(run.frames_per_core_s for run in runs),
        memory_mib=statistics.median(run.memory_mib for run in runs),
        cores_used_by_others=statistics.median(run.cores_used_by_others for run in runs),
        note=peer.note,
    )


def run(peer: Peer, settings: Settings) -> measure.Measurement:
    """Raises measure.FailedError, RuntimeError where its venv cannot be made."""
    if peer.needs_checkout and settings.torchbeast is None:
        raise measure.FailedError("needs --torchbeast")
    python = venvs.python_with(peer.requirements, settings.work)
    folder = settings.torchbeast.resolve() if peer.needs_checkout and settings.torchbeast else None
    return measure.measure(
        peer.command(python, settings),
        folder,
        peer.step,
        start_s=settings.start_seconds,
        warmup_s=settings.warmup_seconds,
        window_s=settings.seconds,
    )


def draw(rows: list[Row], path: str) -> None:
    """Bars of steps per second, KubeBeast's in a colour of their own."""
    measured = sorted((row for row in rows if row.steps_per_s), key=lambda row: row.steps_per_s or 0)
    figure, axes = plt.subplots(figsize=(8, 0.6 + 0.45 * len(measured)), layout="constrained")
    colours = ["#0072b2" if is_own(row.system) else "#999999" for row in measured]
    bars = axes.barh([row.system for row in measured], [row.steps_per_s or 0 for row in measured], color=colours)
    axes.bar_label(bars, fmt="{:,.0f}", padding=4)
    axes.set(
        xlabel="env-steps trained per second, Pong", xlim=(0, 1.12 * max(row.steps_per_s or 0 for row in measured))
    )
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=120)
    plt.close(figure)


def main() -> None:
    settings = tyro.cli(Settings, description=__doc__)
    peers = [peer for peer in PEERS if not settings.only or any(word in peer.name for word in settings.only)]
    rounds: list[Round] = []
    failures: dict[str, str] = {}
    for number in range(1, settings.rounds + 1):
        round_: Round = {}
        for peer in peers:
            if peer.name in failures:
                continue
            try:
                round_[peer.name] = run(peer, settings)
                print(f"round {number}: {peer.name}: {round_[peer.name].steps_per_s:,.0f} steps/s", file=sys.stderr)
            except RuntimeError as error:
                failures[peer.name] = str(error)
                print(f"round {number}: {peer.name}: {error}", file=sys.stderr)
        rounds.append(round_)
    rows = [summarise(peer, rounds, failures.get(peer.name, "")) for peer in peers]
    report.print_table(f"Pong, shallow network, median of {settings.rounds} rounds", rows)
    path = report.write_json("peers", settings, {"rows": rows, "rounds": rounds})
    draw(rows, str(path.with_suffix(".png")))
    print("Results:", path)


if __name__ == "__main__":
    main()
