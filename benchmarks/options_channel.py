"""Cost of options of episodes in the transport: python -m benchmarks.options_channel

Real env-servers play short episodes for the native pool with a null model. With options, the learner chooses the level
of each episode by learning progress over 1000 levels and sends it; without them, resets have none. Both loads are under
way all the time, and all clients but those of one are suspended, so that short measurements with and without alternate.
The ratios are of adjacent ones. us is CPU time in microseconds per env-step.
"""

import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import tyro

from benchmarks import frames, native_server, recorded_env
from benchmarks.cell import Cell
from benchmarks.report import print_table, write_json
from benchmarks.step_cost import Counts, Load, under_load


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    streams: int = 10
    num_envs: int = 50
    """Environments per stream."""
    episode_steps: int = 200
    """Length of the episodes; the environments of a stream end theirs at different steps."""
    seconds: float = 1.0
    """Time of one measurement."""
    settle_seconds: float = 0.2
    """Time before it in which the clients are awake again."""
    warmup_seconds: float = 3.0
    rounds: int = 100
    """Pairs of measurements."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Ratio:
    """Steps per second with options over that without: median, quartiles, and standard error of the mean."""

    median: float
    first_quartile: float
    third_quartile: float
    standard_error: float


Pair = tuple[Counts, Counts]
"""Counts without and with options."""


def main(settings: Settings) -> None:
    plain = Cell(streams=settings.streams, num_envs=settings.num_envs, episode_steps=settings.episode_steps)
    with tempfile.TemporaryDirectory() as folder:
        recording = Path(folder, "frames.npy")
        frames.record(recording, num_envs=settings.num_envs)
        with (
            under_load(native_server.serve, recorded_env.run, plain, recording, settings.streams) as without,
            under_load(
                native_server.serve, recorded_env.run, replace(plain, with_options=True), recording, settings.streams
            ) as with_options,
        ):
            time.sleep(settings.warmup_seconds)
            pairs = alternate(without, with_options, settings)
    totals = [sum(each, Counts()).cost() for each in zip(*pairs, strict=True)]
    print_table("without and with options", totals)
    found = ratio(pairs)
    print_table("steps per second with options over without", [found])
    extra = {cost: per_episode(pairs, cost, settings.episode_steps) for cost in ("server_us", "client_us")}
    print(f"CPU time of an episode's options: {extra['server_us']:.0f} us of the learner's process, ", end="")
    print(f"{extra['client_us']:.0f} us of the env-server's")
    results = {
        "us_per_episode": extra,
        "ratio": found,
        "totals": totals,
        "pairs": [[asdict(each) for each in pair] for pair in pairs],
    }
    print("Results:", write_json("options_channel", settings, results))


def alternate(without: Load, with_options: Load, settings: Settings) -> list[Pair]:
    """Measures the two loads in turn, of which one is under way."""
    without.clients.suspend()
    with_options.clients.suspend()

    def measure(load: Load) -> Counts:
        load.clients.resume()
        time.sleep(settings.settle_seconds)
        counts = load.count(settings.seconds)
        load.clients.suspend()
        return counts

    pairs = []
    for turn in range(settings.rounds):
        # The order alternates, so that drifts of the machine affect both.
        order = (without, with_options) if turn % 2 == 0 else (with_options, without)
        counts = {load: measure(load) for load in order}
        pairs.append((counts[without], counts[with_options]))
    return pairs


def per_episode(pairs: Sequence[Pair], cost: str, episode_steps: int) -> float:
    """Returns the extra cost of the steps of an episode."""
    before, after = (sum(each, Counts()).cost() for each in zip(*pairs, strict=True))
    return float(getattr(after, cost) - getattr(before, cost)) * episode_steps


def ratio(pairs: Sequence[Pair]) -> Ratio:
    """Compares at least two pairs."""
    ratios = [after.cost().steps_per_s / before.cost().steps_per_s for before, after in pairs]
    first, median, third = statistics.quantiles(ratios, n=4)
    error = statistics.stdev(ratios) / len(ratios) ** 0.5
    return Ratio(median=median, first_quartile=first, third_quartile=third, standard_error=error)


if __name__ == "__main__":
    main(tyro.cli(Settings, description=__doc__))
