"""Entry point of `kubebeast report`: reads a run's folder and writes the page."""

from kubebeast_common.atomic_file import write_atomically
from kubebeast_learner.config import ConfigError, ReportConfig
from kubebeast_learner.observe.report.page import render
from kubebeast_learner.observe.report.run_folder import read_run
from kubebeast_learner.run.folder import find_run

NAME = "report.html"


def run(config: ReportConfig) -> int:
    """Writes the page. Returns the exit status; raises ConfigError if there is no such run or writing fails."""
    folder = find_run("run", config.run, config.savedir, ("meta.json", "logs.csv"))
    out = folder / NAME if config.out is None else config.out.expanduser()
    page = render(read_run(folder))
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(out, page.encode())
    except OSError as error:
        raise ConfigError(f"out = {str(out)!r}: {error.strerror}") from error
    print(f"report: {out}")
    return 0
