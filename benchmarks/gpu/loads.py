"""A real learner under a load, for the time of a measurement."""

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks import replay_client
from benchmarks.cell import Cell
from benchmarks.gpu.busy import GpuWatch
from benchmarks.gpu.settings import Settings, Variant
from benchmarks.gpu.transfers import FRAME_STACK
from benchmarks.gpu.window import Row, Shares, is_full, row, shares
from benchmarks.processes import loading
from harness.ports import free_port
from harness.processes.learner_process import LearnerProcess
from kubebeast_observe.scrape import Scrape, parse_metrics

FIRST_UPDATES = 3
"""Updates before the warm-up; they compile and allocate."""
START_S = 400.0
"""Timeout of the first updates: a compiler takes minutes for a large network."""


def measure(variant: Variant, settings: Settings, folder: Path, recording: Path) -> tuple[Row, Shares]:
    """Measures one learner; raises RuntimeError with the end of its log if it does not train."""
    with training(variant, settings, folder, recording) as learner:
        wait_for_updates(learner)
        time.sleep(settings.warmup_seconds)
        before = scrape(learner)
        with GpuWatch() as watch:
            time.sleep(settings.seconds)
            now = scrape_full(learner, before)
    return row(variant, settings, before, now, watch.use), shares(variant, before, now)


def wait_for_updates(learner: LearnerProcess) -> None:
    """Blocks until the first updates are done; raises RuntimeError with the end of the log if the learner fails."""
    wait_until(learner, lambda: learner.newest.get("num_updates", 0) >= FIRST_UPDATES)


def wait_until(learner: LearnerProcess, condition: Callable[[], bool]) -> None:
    """Blocks until the condition is met; raises RuntimeError with the end of the log on a failure or a timeout."""
    deadline = time.monotonic() + START_S
    while not condition():
        if not learner.is_running or time.monotonic() > deadline:
            raise RuntimeError(f"the learner does not train:\n{learner.log()[-2000:]}")
        time.sleep(0.1)


@contextlib.contextmanager
def training(variant: Variant, settings: Settings, folder: Path, recording: Path) -> Iterator[LearnerProcess]:
    if variant.load == "atari":
        with local_training(settings, folder, *variant.flags(settings), *fleet_flags(settings)) as learner:
            yield learner
        return
    cell = Cell(streams=settings.processes, num_envs=settings.envs_per_client, frame_stack=FRAME_STACK)
    with learner_process(settings, folder, *variant.flags(settings)) as learner:
        learner.wait_listening()
        clients = [range(stream, stream + 1) for stream in range(settings.processes)]
        with loading(replay_client.run, clients, cell, learner.address, recording):
            yield learner


def fleet_flags(settings: Settings) -> list[str]:
    return [
        f"--env={settings.env}",
        f"--num-servers={settings.processes}",
        f"--num-actors={settings.envs}",
        f"--max-inference-rows={max(256, settings.envs)}",
    ]


@contextlib.contextmanager
def local_training(settings: Settings, folder: Path, *flags: str) -> Iterator[LearnerProcess]:
    """Runs `kubebeast train`, and stops it and its env-servers at the end."""
    address = f"127.0.0.1:{free_port()}"
    with learner_process(settings, folder, *flags, f"--http-address={address}", command="train") as learner:
        learner.http_address = address
        yield learner
        learner.terminate()


def learner_process(settings: Settings, folder: Path, *flags: str, command: str = "learner") -> LearnerProcess:
    """Returns a learner that sees the GPUs of this process's CUDA_VISIBLE_DEVICES, by default the first one."""
    return LearnerProcess(
        folder,
        "--disable-checkpoint",
        f"--log-interval-s={settings.log_interval_s}",
        *flags,
        command=command,
        variables={"CUDA_VISIBLE_DEVICES": os.environ.get("CUDA_VISIBLE_DEVICES", "0")},
        warm=settings.tiny,
    )


def scrape_full(learner: LearnerProcess, before: Scrape) -> Scrape:
    """Returns the metrics as soon as the window since `before` is full."""
    now = before

    def has_become_full() -> bool:
        nonlocal now
        now = scrape(learner)
        return is_full(before, now)

    wait_until(learner, has_become_full)
    return now


def scrape(learner: LearnerProcess) -> Scrape:
    return Scrape(taken_at_s=time.monotonic(), metrics=parse_metrics(learner.scrape()))
