"""Schedules of disturbances of a learner and its fleet: kills, freezes, a full disk."""

import contextlib
import dataclasses
import random
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from benchmarks.fleet import Fleet, draw_kills
from harness.processes.small_volume import SmallVolume


@dataclasses.dataclass(frozen=True, slots=True)
class Disturbance:
    at_s: float
    """Time since the start of its phase."""
    what: str
    act: Callable[[], object]


def draw_kills_of(fleet: Fleet, generator: random.Random, share: float, interval_s: float) -> list[Disturbance]:
    """Returns the kills of one interval: at least `share` of the places, each once, at random moments."""
    kills = draw_kills(generator, fleet.size, share, interval_s)
    return [Disturbance(moment, f"kill {place}", partial(fleet.kill, place)) for moment, place in kills]


def draw_freezes(
    fleet: Fleet, generator: random.Random, number: int, freeze_s: float, interval_s: float
) -> list[Disturbance]:
    """Returns the freezes of one interval: `number` places freeze at a random moment, for freeze_s or until its end."""
    places = generator.sample(range(fleet.size), min(number, fleet.size))
    begin = generator.uniform(0.0, max(0.0, interval_s - freeze_s))
    found = []
    for place in places:
        found.append(Disturbance(begin, f"freeze {place}", partial(fleet.freeze, place)))
        end = min(begin + freeze_s, interval_s)
        found.append(Disturbance(end, f"thaw {place}", partial(fleet.thaw, place)))
    return found


def fill_disk(disk: SmallVolume, at_s: float, for_s: float) -> list[Disturbance]:
    return [Disturbance(at_s, "disk full", disk.fill), Disturbance(at_s + for_s, "disk relieved", disk.relieve)]


@contextlib.contextmanager
def small_disk(folder: Path) -> Iterator[SmallVolume | None]:
    """Creates `folder` and yields a small volume on it; if none can be mounted, prints the reason and yields None."""
    folder.mkdir(parents=True)
    disk = SmallVolume(folder)
    try:
        disk.__enter__()
    except OSError as error:
        print(f"no full disk: {error}", flush=True)
        yield None
        return
    try:
        yield disk
    finally:
        disk.__exit__(None, None, None)
