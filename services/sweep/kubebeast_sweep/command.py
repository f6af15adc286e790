"""Entry point of `kubebeast sweep`: trains the trials of a file, and writes their results."""

import contextlib
import logging
import os
import shutil
from collections.abc import Collection, Iterator
from pathlib import Path

from rich.console import Console
from rich.logging import RichHandler

from kubebeast_common import log
from kubebeast_common.access.addresses import EVERYWHERE, is_local
from kubebeast_common.access.places import local
from kubebeast_common.cli.command import find_commands
from kubebeast_common.process.stopping import Stop, stop_on_signals
from kubebeast_common.settings import ConfigError, require
from kubebeast_common.volume import is_full
from kubebeast_observe.table import console
from kubebeast_runs.lock import BusyError, lock_file
from kubebeast_sweep.plan import Plan, read_plan, require_same
from kubebeast_sweep.population import seed_of
from kubebeast_sweep.processes.own_broker import ADDRESS, BrokerError, own_broker
from kubebeast_sweep.processes.run_process import RunProcess
from kubebeast_sweep.results.files import BEST, write_results
from kubebeast_sweep.results.picture import draw
from kubebeast_sweep.results.schedules import draw_schedules
from kubebeast_sweep.results.table import draw_table, make_display, ranked
from kubebeast_sweep.settings import SweepConfig
from kubebeast_sweep.sweep import POLL_S, Sweep, SweepError, num_places, os_cores, shares_of
from kubebeast_sweep.training_run import ANY_RUN, Launch, run_name
from kubebeast_sweep.trials.study import JOURNAL, Study

PLAN, LOCK, PICTURE = "sweep.yaml", ".lock", "sweep.png"
_FAILED_WRITE = os.EX_IOERR
"""Exit status if the folder cannot be written any more; a Job starts the sweep again."""
FILE_WIDTH = 120
"""Columns of the table if standard output is no terminal."""

logger = logging.getLogger(__name__)


def run(config: SweepConfig) -> int:
    """Trains the trials of config.file, or shows them. Returns the exit status; raises ConfigError."""
    plan = read_plan(config.file)
    if plan.command not in find_commands() and config.job_template is None:
        raise ConfigError(f"command = {plan.command!r}: the package kubebeast-learner, which has it, is missing")
    for name, value in (("broker", config.broker), ("job_template", config.job_template)):
        require(not value or plan.command == "learner", name, str(value), "is for command: learner")
    is_local_only = config.job_template is not None and not config.broker
    require(not is_local_only, "job_template", str(config.job_template), "needs broker, which all pods can reach")
    if plan.command == "learner" and not config.broker and "broker" not in find_commands():
        raise ConfigError("command = 'learner': the package kubebeast-broker, which has the broker, is missing")
    folder = local(config.savedir) / (config.name or config.file.stem)
    try:
        if config.show:
            return _show(plan, folder)
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"savedir = {config.savedir!r}: {error}") from error
    leaves_runs = config.job_owner != ""
    promise = "the runs go on, for" if leaves_runs else "the runs save and end;"
    with (
        _logging(Console(stderr=True)) as out,
        stop_on_signals(f"{promise} the same command, which goes on with them", config.stop_status) as stop,
    ):
        try:
            with _lock(folder, stop, waits=leaves_runs):
                return stop.exit_status if stop.is_set() else _train(config, plan, folder, stop, out)
        except OSError as error:
            if not is_full(error):
                raise ConfigError(f"savedir = {config.savedir!r}: {error}") from error
            logger.error("%s", error)
            return _FAILED_WRITE


def _lock(folder: Path, stop: Stop, *, waits: bool) -> contextlib.AbstractContextManager[object]:
    """Locks the sweep, or blocks until that is possible or the stop, if it waits for a predecessor.

    Raises BusyError and OSError.
    """
    is_waiting = False
    while True:
        try:
            return lock_file(folder / LOCK, lambda holder: f"name = {folder.name!r}: {holder} runs this sweep")
        except BusyError as error:
            if not waits:
                raise
            if not is_waiting:
                logger.warning("%s; waiting until it ends", error)
            is_waiting = True
        if stop.wait(POLL_S):
            return contextlib.nullcontext()


def _train(config: SweepConfig, plan: Plan, folder: Path, stop: Stop, out: Console) -> int:
    _keep_plan(config.file, plan, folder)
    needs_broker = plan.command == "learner" and not config.broker
    launch, places = _places(config)
    with own_broker(folder, is_needed=needs_broker) as broker:
        study = Study(plan, folder, stop)
        flags = _flags_for_fleet(config, plan) if plan.command == "learner" else []
        sweep = Sweep(
            plan, study, folder, launch=launch, places=places, flags=flags, leaves_runs=config.job_owner != ""
        )
        display = make_display(config.progress, plan, study, out)

        def look() -> None:
            display.show(sum(trial.steps for trial in sweep.active))
            if broker is not None:
                broker.look()

        try:
            sweep.run(stop, look)
        except (SweepError, BrokerError) as error:
            logger.error("%s", error)
            return 1
        finally:
            display.close()
            _write(plan, study, folder)
        _print(plan, study, folder)
        return stop.exit_status


def _places(config: SweepConfig) -> tuple[Launch, list[Collection[int]]]:
    """Returns the function that starts a run, and the cores of each run at a time. Raises ConfigError."""
    if config.job_template is None:
        return RunProcess, shares_of(os_cores(), config.parallel or num_places())
    require(config.parallel > 0, "parallel", config.parallel, "must be at least 1 with job_template")
    from kubebeast_sweep.jobs import launcher  # needs an extra

    return launcher(config), [()] * config.parallel


def _flags_for_fleet(config: SweepConfig, plan: Plan) -> list[str]:
    """Returns the flags of learners that share the fleet of a broker: on one machine, each listens on a port of its
    own.
    """
    broker = config.broker or ADDRESS
    flags = [f"--broker={broker}"]
    if config.job_template is None and "address" not in plan.settings:
        flags.append(f"--address={'127.0.0.1' if is_local(broker) else EVERYWHERE}:0")
    return flags


def _show(plan: Plan, folder: Path) -> int:
    if not (folder / JOURNAL).is_file():
        raise ConfigError(f"name = {folder.name!r}: there is no {JOURNAL} in {folder}")
    require_same(plan, folder / PLAN)
    study = Study(plan, folder, is_read_only=True)
    _write(plan, study, folder)
    _print(plan, study, folder)
    return 0


def _keep_plan(file: Path, plan: Plan, folder: Path) -> None:
    """Copies the file to the folder, as a record and for the check of the next start.

    If no run has begun, as their settings were refused, a sweep with another file begins anew. Raises ConfigError and
    OSError.
    """
    if (folder / PLAN).is_file():
        try:
            require_same(plan, folder / PLAN)
        except ConfigError:
            if any(each.is_dir() for each in folder.glob(ANY_RUN)):
                raise
            (folder / JOURNAL).unlink(missing_ok=True)
    if file.resolve() != (folder / PLAN).resolve():
        shutil.copyfile(file, folder / PLAN)


def _write(plan: Plan, study: Study, folder: Path) -> None:
    write_results(plan, study, folder)
    draw_picture = draw_schedules if plan.population else draw
    draw_picture(plan, study, folder / PICTURE, f"{folder.name}: {plan.settings.get('env', plan.command)}")


def _print(plan: Plan, study: Study, folder: Path) -> None:
    out = console(FILE_WIDTH)
    out.print(draw_table(plan, ranked(plan, study.trials())))
    best = study.best()
    if best is not None:
        name = run_name(best.number, seed_of(plan, best) if plan.population else plan.seeds[0])
        print(f"best settings: {folder / BEST}, picture: {folder / PICTURE}")
        recipe = "" if plan.recipe == "auto" else f" --recipe {plan.recipe}"
        print(f"train with them: kubebeast {plan.command}{recipe} --config {folder / BEST}")
        print(f"play the best run: kubebeast eval --savedir {folder} --xpid {name}")


@contextlib.contextmanager
def _logging(out: Console) -> Iterator[Console]:
    handler = log.configure("info")
    if out.is_interactive:  # above the live table
        logging.getLogger().removeHandler(handler)
        logging.getLogger().addHandler(RichHandler(console=out, show_path=False))
    yield out
