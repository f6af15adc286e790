"""What surrounds a training in its process: the native pool, env-server processes, signals, threads, logs."""

import contextlib
import logging
import os
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import FrameType

import torch
import yaml
from rich.console import Console
from rich.logging import RichHandler

from kubebeast_learner.checkpoint import CheckpointError, CheckpointStore
from kubebeast_learner.config import ConfigError, LearnerConfig, LocalFleetConfig, TrainConfig
from kubebeast_learner.config_sources import as_settings
from kubebeast_learner.learner import DivergedError
from kubebeast_learner.local_fleet import FleetError, LocalFleet
from kubebeast_learner.progress import make_progress
from kubebeast_learner.run_log import RunLog, default_xpid
from kubebeast_learner.training import Training
from kubebeast_native import ActorPool, ClosedError

logger = logging.getLogger(__name__)

EXIT_FAILED, EXIT_USAGE = 1, 2
LONGEST_SOCKET_PATH = 100
"""sun_path holds 108 bytes on Linux, 104 on macOS (unix(7))."""


def train(config: TrainConfig) -> int:
    """`kubebeast train`: the learner and its env-servers on this machine. Returns the exit status."""
    with private_address() as address:
        return _run(config, config.rollout.address or address, config.fleet)


def learn(config: LearnerConfig) -> int:
    """`kubebeast learner`: the learner, for env-servers that dial in. Returns the exit status."""
    if not config.rollout.address:
        raise ConfigError("address = '': env-servers elsewhere need an address to dial")
    return _run(config, config.rollout.address, None)


@contextlib.contextmanager
def private_address() -> Iterator[str]:
    """A unix socket in a folder of our own, removed afterwards; loopback where the path would be too long."""
    folder = tempfile.mkdtemp(prefix="kubebeast-")
    path = f"{folder}/pool.sock"
    try:
        yield f"unix:{path}" if len(path.encode()) <= LONGEST_SOCKET_PATH else "127.0.0.1:0"
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _run(config: LearnerConfig, address: str, fleet_config: LocalFleetConfig | None) -> int:
    savedir = config.run.savedir.expanduser().absolute()
    config = replace(config, run=replace(config.run, xpid=config.run.xpid or default_xpid(), savedir=savedir))
    console = Console()
    try:
        run_log = RunLog(savedir, config.run.xpid, as_settings(config))
    except OSError as error:
        raise ConfigError(f"savedir = {str(savedir)!r}: {error}") from error
    with _logging_to(console), run_log:
        try:
            summary = _train(config, address, fleet_config, run_log, console)
        except ConfigError as error:
            logger.error("%s", error)
            return EXIT_USAGE
        except (CheckpointError, ClosedError, DivergedError, FleetError, OSError) as error:
            logger.error("the run failed: %s", error)
            return EXIT_FAILED
        except Exception:
            logger.exception("the run failed")
            return EXIT_FAILED
        run_log.successful = True
    print(summary, flush=True)
    return 0


def _train(
    config: LearnerConfig, address: str, fleet_config: LocalFleetConfig | None, run_log: RunLog, console: Console
) -> str:
    """Trains to the end or to a signal; returns the summary."""
    run = config.run
    _record_settings(run_log.folder, as_settings(config))
    _set_threads(run.learner_threads, fleet_config.num_servers if fleet_config else 0)
    torch.manual_seed(run.seed)
    pool = make_pool(config, address)
    pool.start()
    logger.info("listening on %s", pool.address)
    fleet = None
    if fleet_config is not None:
        log_path = run_log.folder / "env-servers.log"
        fleet = LocalFleet(fleet_config, address=pool.address, seed=run.seed, log_path=log_path)
    # Left in reverse: the pool ends its streams before the processes behind them are stopped.
    with (
        _stop_on_signals() as stop,
        fleet or contextlib.nullcontext(),
        contextlib.closing(pool),
        contextlib.closing(make_progress(run.progress, run.xpid, run.log_interval_s, console)) as progress,
    ):
        store = CheckpointStore(run_log.folder, run.keep_checkpoints)
        training = Training(config, pool=pool, fleet=fleet, store=store, run_log=run_log, progress=progress)
        training.run(stop)
        return training.summary()


def make_pool(config: LearnerConfig, address: str) -> ActorPool:
    """The native pool, not started yet. ConfigError when it refuses a value."""
    rollout = config.rollout
    try:
        return ActorPool(
            address=address,
            run_id=config.run.xpid,
            unroll_length=rollout.unroll_length,
            batch_size=rollout.batch_size,
            min_inference_rows=rollout.min_inference_rows,
            max_inference_rows=rollout.max_inference_rows,
            inference_timeout_ms=rollout.inference_timeout_ms,
            max_queued_rollouts=rollout.max_learner_queue_size,
            max_streams=rollout.max_streams,
            max_envs=rollout.max_envs,
            max_message_bytes=rollout.max_message_mib << 20,
            min_partial_steps=rollout.min_partial_steps,
            handshake_timeout_ms=round(rollout.handshake_timeout_s * 1000),
            step_timeout_ms=round(rollout.step_timeout_s * 1000),
        )
    except ValueError as error:
        raise ConfigError(str(error)) from error


@contextlib.contextmanager
def _logging_to(console: Console) -> Iterator[None]:
    """Messages go above the live table on a terminal, else to standard error, which leaves standard output to JSON."""
    handler: logging.Handler
    if console.is_interactive:
        handler = RichHandler(console=console, show_path=False)
    else:
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    root = logging.getLogger()
    level = root.level
    root.setLevel(logging.INFO)
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)
        root.setLevel(level)


def _record_settings(folder: Path, settings: dict[str, object]) -> None:
    text = yaml.safe_dump(settings, sort_keys=False)
    (folder / "config.yaml").write_text(text, encoding="utf-8")
    logger.info("settings: %s", " ".join(f"{name}={value}" for name, value in settings.items()))


@contextlib.contextmanager
def _stop_on_signals() -> Iterator[threading.Event]:
    """An event that SIGINT and SIGTERM set; a second one raises KeyboardInterrupt."""
    stop = threading.Event()

    def on_signal(number: int, frame: FrameType | None) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()
        print(f"\n{signal.Signals(number).name}: ending with a checkpoint; once more to abort", file=sys.stderr)

    before = {number: signal.signal(number, on_signal) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _set_threads(learner_threads: int, num_servers: int) -> None:
    num_cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    torch.set_num_threads(learner_threads or min(4, max(1, num_cores - num_servers)))
