"""Content of the report, section by section; page.html is its layout."""

import datetime
from collections.abc import Iterable
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from rich.filesize import decimal

from kubebeast_observe.numbers import number_text, short_text
from kubebeast_observe.report.run_folder import RunFolder
from kubebeast_observe.report.settings import Setting, compare, shown

POLICY = "default-src 'none'; style-src 'unsafe-inline'"
"""Content security policy: no scripts and no other files.
https://developer.mozilla.org/docs/Web/HTTP/Headers/Content-Security-Policy
"""
MAX_TEXT = 20_000
"""Maximum number of characters of one text."""
GIB = 1 << 30


def render(run: RunFolder) -> str:
    """Renders a self-contained HTML document. All values from the run are escaped as text."""
    loader = PackageLoader("kubebeast_observe", "report")
    templates = Environment(
        loader=loader, autoescape=True, finalize=_clean, trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined
    )
    pictures = _pictures(run)
    settings = compare(run.record("args"), run.record("defaults"), run.record("recipe"))
    return templates.get_template("page.html").render(
        run=run,
        policy=POLICY,
        status=status(run),
        subtitle=_subtitle(run),
        tiles=tiles(run),
        has_pictures=pictures is not None,
        hero=pictures and pictures[0],
        groups=pictures[1] if pictures else [],
        changed=changed(settings),
        unchanged=[setting for setting in settings if not setting.origin],
        shown=shown,
        facts=facts(run),
    )


def _pictures(run: RunFolder) -> tuple[Any, Any] | None:
    """Returns the learning curve and the groups of figures; None without the packages of the extra `plot`."""
    try:
        from kubebeast_observe.report.figures import figures, return_figure
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("matplotlib", "numpy"):
            raise
        return None
    return return_figure(run.log, run.scores), figures(run.log)


def changed(settings: Iterable[Setting]) -> list[Setting]:
    """Returns the settings other than the defaults: those of this run, then those of the recipe."""
    return sorted((s for s in settings if s.origin), key=lambda s: (s.origin.startswith("recipe"), s.name))


def status(run: RunFolder) -> tuple[str, str]:
    """Returns the outcome of the run: a CSS class and a text."""
    if not run.meta:
        return "unknown", "end not recorded"
    if run.meta.get("successful"):
        total = run.record("args").get("total_steps")
        is_short = run.log.steps and isinstance(total, int) and run.log.steps[-1] < total
        return "good", "stopped early" if is_short else "finished"
    return ("bad", "failed") if run.meta.get("date_end") else ("open", "running, or killed")


def _subtitle(run: RunFolder) -> str:
    started = str(run.meta.get("date_start") or "")[:16]
    resumed = len(run.out_log.resumed_at_steps)
    times = {0: "", 1: "resumed once"}.get(resumed, f"resumed {resumed} times")
    return " · ".join(filter(None, [run.env_id, f"started {started}" if started else "", times]))


def tiles(run: RunFolder) -> list[tuple[str, str, str]]:
    """Returns name, value and remark."""
    log = run.log
    best = log.best("mean_episode_return")
    total = run.record("args").get("total_steps")
    steps, hours = (values[-1] if values else None for values in (log.steps, log.hours))
    skipped, failures = log.newest("num_skipped_updates"), log.newest("env_failures")
    return [
        (
            "mean return",
            short_text(log.newest("mean_episode_return")),
            "" if best is None else f"best {short_text(best)}",
        ),
        ("env-steps", short_text(steps), f"of {short_text(total)}" if isinstance(total, (int, float)) else ""),
        ("steps/s", short_text(log.steps_per_second), "mean of the run"),
        ("trained for", "-" if hours is None else str(datetime.timedelta(seconds=round(3600 * hours))), ""),
        ("episodes", short_text(log.newest("episodes")), f"{number_text(failures)} more failed" if failures else ""),
        ("updates", short_text(log.newest("num_updates")), f"{number_text(skipped)} skipped" if skipped else ""),
    ]


def facts(run: RunFolder) -> list[tuple[str, list[list[str]]]]:
    """Returns tables of names and values; the page omits those without rows."""
    checkpoints = [
        [file.name, "" if file.step is None else f"{file.step:,} steps", decimal(file.num_bytes)]
        for file in run.checkpoints
    ]
    return [
        ("Environment", _environment(run)),
        ("Hardware", _hardware(run)),
        ("Versions", _versions(run)),
        ("Checkpoints", checkpoints),
    ]


def _environment(run: RunFolder) -> list[list[str]]:
    rows = [["id", run.env_id]] if run.env_id else []
    if run.env_spec is not None:
        if run.env_spec.env_config is not None:
            rows.append(["made with", str(run.env_spec.env_config)])
        rows += [["observation", str(leaf)] for leaf in run.env_spec.observation]
        rows += [["action", str(leaf)] for leaf in run.env_spec.action]
    elif run.out_log.env_spec:
        rows.append(["spaces", run.out_log.env_spec])
    return rows


def _hardware(run: RunFolder) -> list[list[str]]:
    hardware = run.record("hardware")
    rows = []
    if hardware:
        rows += [["CPU", f"{hardware.get('cpu') or 'not known'}, {hardware.get('cores')} cores"]]
        rows += [["memory", _gib(hardware.get("memory_bytes"))]]
        rows += [["GPU", f"{gpu.get('name')}, {_gib(gpu.get('memory_bytes'))}"] for gpu in hardware.get("gpus") or []]
    if run.out_log.device:
        rows.append(["learner's device", run.out_log.device])
    return rows


def _versions(run: RunFolder) -> list[list[str]]:
    git, rows = run.record("git"), [[name, str(version)] for name, version in run.record("versions").items()]
    if git:
        changes = " with uncommitted changes" if git.get("is_dirty") else ""
        rows.append(["git commit", f"{str(git.get('commit'))[:12]} ({git.get('branch')}){changes}"])
    return rows + [[f"SLURM {name.replace('_', ' ')}", str(value)] for name, value in run.record("slurm").items()]


def _gib(num_bytes: Any) -> str:
    return f"{num_bytes / GIB:,.0f} GiB" if isinstance(num_bytes, (int, float)) else "size not known"


def _clean(value: Any) -> Any:
    """Replaces control characters and lone surrogates in texts by spaces."""
    if isinstance(value, Markup) or not isinstance(value, str):
        return value
    return "".join(c if c.isprintable() or c == "\n" else " " for c in value[:MAX_TEXT])
