"""The command: reads a run's folder and writes the page."""

from kubebeast_learner.atomic_file import write_atomically
from kubebeast_learner.config import ConfigError, ReportConfig
from kubebeast_learner.report.page import render
from kubebeast_learner.report.run_folder import find_run, read_run

NAME = "report.html"


def run(config: ReportConfig) -> int:
    """Writes the page. Returns the exit status; ConfigError when there is no such run, or nowhere to write."""
    folder = find_run(config.run, config.savedir)
    out = folder / NAME if config.out is None else config.out.expanduser()
    page = render(read_run(folder))
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(out, page.encode())
    except OSError as error:
        raise ConfigError(f"out = {str(out)!r}: {error.strerror}") from error
    print(f"report: {out}")
    return 0
