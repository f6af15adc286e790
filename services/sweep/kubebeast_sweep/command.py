"""Entry point of `kubebeast sweep`: trains the trials of a file, and writes their results."""

import contextlib
import logging
import shutil
from collections.abc import Collection, Iterator
from pathlib import Path

from rich.console import Console
from rich.logging import RichHandler

from kubebeast_common import log
from kubebeast_common.access.addresses import EVERYWHERE, is_local
from kubebeast_common.access.places import local
from kubebeast_common.cli.command import find_commands
from kubebeast_common.process.stopping import stop_on_signals
from kubebeast_common.settings import ConfigError, require
from kubebeast_observe.table import console
from kubebeast_runs.lock import lock_file
from kubebeast_sweep.plan import Plan, read_plan, require_same
from kubebeast_sweep.population import seed_of
from kubebeast_sweep.processes.own_broker import broker_of
from kubebeast_sweep.processes.run_process import RunProcess
from kubebeast_sweep.results.files import BEST, write_results
from kubebeast_sweep.results.picture import draw
from kubebeast_sweep.results.schedules import draw_schedules
from kubebeast_sweep.results.table import draw_table, make_display, ranked
from kubebeast_sweep.settings import SweepConfig
from kubebeast_sweep.study import JOURNAL, Study
from kubebeast_sweep.sweep import Sweep, SweepError, num_places, os_cores, shares_of
from kubebeast_sweep.training_run import Launch, run_name

PLAN, LOCK, PICTURE = "sweep.yaml", ".lock", "sweep.png"
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
    if config.show:
        return _show(plan, folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with lock_file(folder / LOCK, lambda holder: f"name = {folder.name!r}: {holder} runs this sweep"):
            return _train(config, plan, folder)
    except OSError as error:
        raise ConfigError(f"savedir = {config.savedir!r}: {error}") from error


def _train(config: SweepConfig, plan: Plan, folder: Path) -> int:
    _keep_plan(config.file, plan, folder)
    out = Console(stderr=True)
    shares_fleet = plan.command == "learner"
    launch, places = _places(config)
    leaves_runs = config.job_owner != ""
    promise = "the runs go on, for" if leaves_runs else "the runs save and end;"
    with (
        _logging(out),
        stop_on_signals(f"{promise} the same command, which goes on with them", config.stop_status) as stop,
        broker_of(config.broker, folder, is_needed=shares_fleet) as broker,
    ):
        study = Study(plan, folder)
        flags = _flags_for_fleet(config, plan, broker) if shares_fleet else []
        sweep = Sweep(plan, study, folder, launch=launch, places=places, flags=flags, leaves_runs=leaves_runs)
        display = make_display(config.progress, plan, study, out)
        try:
            sweep.run(stop, lambda: display.show(sum(trial.steps for trial in sweep.active)))
        except SweepError as error:
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


def _flags_for_fleet(config: SweepConfig, plan: Plan, broker: str) -> list[str]:
    """Returns the flags of learners that share the fleet of a broker: on one machine, each listens on a port of its
    own.
    """
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
    """Copies the file to the folder, as a record and for the check of the next start."""
    if (folder / PLAN).is_file():
        require_same(plan, folder / PLAN)
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
def _logging(out: Console) -> Iterator[None]:
    handler = log.configure("info")
    if out.is_interactive:  # above the live table
        logging.getLogger().removeHandler(handler)
        logging.getLogger().addHandler(RichHandler(console=out, show_path=False))
    yield
