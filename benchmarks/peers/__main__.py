"""Speed of other systems at the same work on this machine: Pong, four frames per step in stacks of four 84x84 images,
the shallow network, including training.

    python -m benchmarks.peers --torchbeast ../torchbeast

Each system is installed from its public package into a separate venv, and trains with its usual settings, which are in
benchmarks/peers/programs. In a round, all systems run one after the other; results are medians over the rounds, and
ratios are taken within a round. A system that cannot run here has the reason instead of numbers.
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
    """Median over the rounds, like all fields below."""
    ratio: float | None = None
    """Ratio to the fastest other system of the same round; for other systems, to KubeBeast's slowest command."""
    frames_per_core_s: float | None = None
    """Frames of the game for each second of CPU time."""
    memory_mib: float | None = None
    """Largest sum of proportional set sizes."""
    cores_used_by_others: float | None = None
    """Cores used by other processes; if it is far from 0, the results are unreliable."""
    note: str = ""


Round = dict[str, measure.Measurement]


def is_own(system: str) -> bool:
    return system.startswith("kubebeast")


def ratio(system: str, round_: Round) -> float | None:
    """Returns the ratio of KubeBeast to the fastest other system, or of others to KubeBeast's slowest command."""
    others = {name: run.steps_per_s for name, run in round_.items() if is_own(name) != is_own(system)}
    if not others or system not in round_:
        return None
    return round_[system].steps_per_s / (max(others.values()) if is_own(system) else min(others.values()))


def summarise(peer: Peer, rounds: list[Round], failure: str) -> Row:
    """Returns the medians of a system, or its failure if it has no measurement."""
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
    """Measures a system; raises measure.FailedError if it fails, RuntimeError if its venv cannot be created."""
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
    """Draws bars of steps per second, with a distinct color for KubeBeast."""
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
