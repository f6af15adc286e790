"""A real learner under a load, for as long as a measurement takes."""

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks import frames, replay_client
from benchmarks.cell import Cell
from benchmarks.gpu.busy import GpuWatch
from benchmarks.gpu.settings import Settings, Variant
from benchmarks.gpu.transfers import FRAME_STACK
from benchmarks.gpu.window import Row, Shares, row, shares
from benchmarks.processes import loading
from harness.ports import free_port
from harness.processes.learner_process import LearnerProcess
from kubebeast_learner.observe.scrape import Scrape, parse_metrics

FIRST_UPDATES = 3
"""The first ones compile and allocate."""
START_S = 400.0
"""Longest until then: a compiler takes minutes for a large network."""
COMMON = ("--disable-checkpoint", "--log-interval-s=0.5")


def measure(variant: Variant, settings: Settings, folder: Path, recording: Path) -> tuple[Row, Shares]:
    """RuntimeError, with the learner's log, where it does not train."""
    with training(variant, settings, folder, recording) as learner:
        wait_for_updates(learner)
        time.sleep(settings.warmup_seconds)
        before = scrape(learner)
        with GpuWatch() as watch:
            time.sleep(settings.seconds)
            now = scrape(learner)
    return row(variant, settings, before, now, watch.use), shares(variant, before, now)


def wait_for_updates(learner: LearnerProcess) -> None:
    """Blocks until the first ones are done. RuntimeError, with the end of the log, where they do not come."""
    deadline = time.monotonic() + START_S
    while learner.newest.get("num_updates", 0) < FIRST_UPDATES:
        if not learner.is_running or time.monotonic() > deadline:
            raise RuntimeError(f"the learner does not train:\n{learner.log()[-2000:]}")
        time.sleep(0.1)


@contextlib.contextmanager
def training(variant: Variant, settings: Settings, folder: Path, recording: Path) -> Iterator[LearnerProcess]:
    if variant.load == "atari":
        with local_training(folder, *variant.flags(settings), *fleet_flags(settings)) as learner:
            yield learner
        return
    cell = Cell(
        streams=settings.processes,
        num_envs=min(frames.NUM_ENVS, settings.envs // settings.processes),
        frame_stack=FRAME_STACK,
    )
    with LearnerProcess(folder, *COMMON, *variant.flags(settings), variables=gpu_variables()) as learner:
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
def local_training(folder: Path, *flags: str) -> Iterator[LearnerProcess]:
    """`kubebeast train`, stopped in the end with its env-servers."""
    address = f"127.0.0.1:{free_port()}"
    variables = gpu_variables()
    own = (*COMMON, *flags, f"--http-address={address}")
    with LearnerProcess(folder, *own, command="train", variables=variables) as learner:
        learner.http_address = address
        yield learner
        learner.terminate()


def gpu_variables() -> dict[str, str]:
    """The learner sees the first GPU, or those that this process sees."""
    return {"CUDA_VISIBLE_DEVICES": os.environ.get("CUDA_VISIBLE_DEVICES", "0")}


def scrape(learner: LearnerProcess) -> Scrape:
    return Scrape(taken_at_s=time.monotonic(), metrics=parse_metrics(learner.scrape()))
