"""Cost of options of episodes in the transport: python -m benchmarks.options_channel

Real env-servers play short episodes for the native pool with a null model. With options, the learner chooses the level
of each episode by learning progress over 1000 levels and sends it; without them, resets have none. Measurements with
and without alternate, and the ratios are of adjacent ones. us is CPU time in microseconds per env-step.
"""

import statistics
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import tyro

from benchmarks import frames, native_server, recorded_env
from benchmarks.cell import Cell
from benchmarks.report import print_table, write_json
from benchmarks.step_cost import StepCost, step_cost


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    streams: int = 10
    num_envs: int = 50
    """Environments per stream."""
    episode_steps: int = 200
    """Length of the episodes; the environments of a stream end theirs at different steps."""
    seconds: float = 10.0
    warmup_seconds: float = 3.0
    rounds: int = 6
    """Pairs of measurements."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Ratio:
    """A cost with options over that without: median, lowest and highest of the rounds."""

    cost: str
    median: float
    lowest: float
    highest: float


def main(settings: Settings) -> None:
    plain = Cell(streams=settings.streams, num_envs=settings.num_envs, episode_steps=settings.episode_steps)
    with_options = replace(plain, with_options=True)
    times = settings.seconds, settings.warmup_seconds
    pairs: list[tuple[StepCost, StepCost]] = []
    with tempfile.TemporaryDirectory() as folder:
        recording = Path(folder, "frames.npy")
        frames.record(recording, num_envs=settings.num_envs)
        for turn in range(settings.rounds):
            # The order alternates, so that drifts of the machine affect both.
            order = (plain, with_options) if turn % 2 == 0 else (with_options, plain)
            costs = {
                cell.with_options: step_cost(
                    native_server.serve, recorded_env.run, cell, *times, recording, settings.streams
                )
                for cell in order
            }
            pairs.append((costs[False], costs[True]))
    print_table("without and with options, in turn", [each for pair in pairs for each in pair])
    found = [ratio(pairs, cost) for cost in ("steps_per_s", "server_us", "client_us")]
    print_table("with options over without", found)
    extra = {cost: per_episode(pairs, cost, settings.episode_steps) for cost in ("server_us", "client_us")}
    print(f"CPU time of an episode's options: {extra['server_us']:.0f} us of the learner's process, ", end="")
    print(f"{extra['client_us']:.0f} us of the env-server's")
    results = {
        "us_per_episode": extra,
        "pairs": [[asdict(each) for each in pair] for pair in pairs],
        "ratios": [asdict(each) for each in found],
    }
    print("Results:", write_json("options_channel", settings, results))


def per_episode(pairs: Sequence[tuple[StepCost, StepCost]], cost: str, episode_steps: int) -> float:
    """Returns the median of the extra cost of the steps of an episode."""
    extra: float = statistics.median(getattr(after, cost) - getattr(before, cost) for before, after in pairs)
    return extra * episode_steps


def ratio(pairs: Sequence[tuple[StepCost, StepCost]], cost: str) -> Ratio:
    ratios = [getattr(after, cost) / getattr(before, cost) for before, after in pairs]
    return Ratio(cost=cost, median=statistics.median(ratios), lowest=min(ratios), highest=max(ratios))


if __name__ == "__main__":
    main(tyro.cli(Settings, description=__doc__))
