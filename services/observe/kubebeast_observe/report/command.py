"""Entry point of `kubebeast report`: reads a run's folder and writes the page."""

from pathlib import Path

from kubebeast_common.access.places import is_url
from kubebeast_common.atomic_file import write_atomically
from kubebeast_common.settings import ConfigError
from kubebeast_observe.report.page import render
from kubebeast_observe.report.run_folder import read_run
from kubebeast_observe.report.text import draw
from kubebeast_observe.settings import ReportConfig
from kubebeast_observe.table import console
from kubebeast_runs.folder import find_run

NAME = "report.html"
FILE_WIDTH = 500
"""Columns of the text if standard output is no terminal, so that nothing is folded."""


def run(config: ReportConfig) -> int:
    """Writes the page, or prints it as text. Returns the exit status.

    Raises ConfigError if there is no such run or if writing fails.
    """
    folder = find_run("run", config.run, config.savedir, ("meta.json", "logs.csv"))
    if config.text:
        console(FILE_WIDTH).print(draw(read_run(folder)))
        return 0
    out = _default_out(config, folder) if config.out is None else config.out.expanduser()
    page = render(read_run(folder))
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(out, page.encode())
    except OSError as error:
        raise ConfigError(f"out = {str(out)!r}: {error.strerror}") from error
    print(f"report: {out}")
    return 0


def _default_out(config: ReportConfig, folder: Path) -> Path:
    """Returns the page in the run's folder; if the run is in a bucket, one of its name in the working directory."""
    is_copy = is_url(config.run) or is_url(config.savedir)
    return Path(f"{folder.name}-{NAME}") if is_copy and not Path(config.run).is_dir() else folder / NAME
