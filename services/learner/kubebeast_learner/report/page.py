"""The page, section by section."""

import datetime
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from rich.filesize import decimal

from kubebeast_learner.report.chart import number_text
from kubebeast_learner.report.figures import figures, return_figure
from kubebeast_learner.report.markup import Child, Element, element, write_page
from kubebeast_learner.report.out_log import Message
from kubebeast_learner.report.run_folder import RunFolder
from kubebeast_learner.report.settings import compare, shown

POLICY = "default-src 'none'; style-src 'unsafe-inline'"
"""The page loads nothing and runs nothing: https://developer.mozilla.org/docs/Web/HTTP/Headers/Content-Security-Policy"""
GIB = 1 << 30


def render(run: RunFolder) -> str:
    """A whole HTML document that needs no other file."""
    style = files("kubebeast_learner.report").joinpath("style.css").read_text(encoding="utf-8")
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("meta", http_equiv="Content-Security-Policy", content=POLICY),
        element("title", f"{run.name}: {run.env_id}" if run.env_id else run.name),
        element("style", style),
    )
    sections: list[Child] = [
        _header(run),
        _tiles(run),
        return_figure(run.log) or element("p", "No episode has finished.", class_="empty"),
        [_section(name, element("div", members, class_="grid")) for name, members in figures(run.log)],
        _settings(run),
        element("div", _environment(run), _machine(run), _source(run), _checkpoints(run), class_="facts"),
        _messages(run),
        element("footer", "Made by kubebeast report."),
    ]
    return write_page(element("html", head, element("body", element("main", sections)), lang="en"))


def status(run: RunFolder) -> tuple[str, str]:
    """How the run ended, in a word for the style and one for people."""
    if not run.meta:
        return "unknown", "end not recorded"
    if run.meta.get("successful"):
        total = run.record("args").get("total_steps")
        is_short = run.curve is not None and isinstance(total, int) and run.curve.num_steps < total
        return "good", "stopped early" if is_short else "finished"
    return ("bad", "failed") if run.meta.get("date_end") else ("open", "running, or killed")


def _header(run: RunFolder) -> Element:
    kind, word = status(run)
    started = str(run.meta.get("date_start") or "")[:16]
    resumed = len(run.out_log.resumed_at_steps)
    parts = [run.env_id, f"started {started}" if started else "", f"resumed {resumed} times" if resumed > 1 else ""]
    parts += ["resumed once"] * (resumed == 1)
    subtitle = " · ".join(filter(None, parts))
    return element(
        "header",
        element("h1", run.name, " ", element("span", word, class_=f"pill {kind}")),
        element("p", subtitle, class_="subtitle"),
    )


def _tiles(run: RunFolder) -> Element:
    log, curve = run.log, run.curve
    returns = log.column("mean_episode_return")
    total = run.record("args").get("total_steps")
    steps = curve.num_steps if curve else None
    share = f"of {number_text(total)}" if isinstance(total, (int, float)) else ""
    best = "" if returns is None else f"best {number_text(float(returns[returns == returns].max()))}"
    hours = curve.num_hours if curve else None
    tiles = [
        ("mean return", _value(log.newest("mean_episode_return")), best),
        ("env-steps", _value(steps), share),
        ("steps/s", _value(curve.steps_per_second if curve else None), "mean of the run"),
        ("trained for", "-" if hours is None else str(datetime.timedelta(seconds=round(3600 * hours))), ""),
        ("episodes", _value(log.newest("episodes")), ""),
        ("updates", _value(log.newest("num_updates")), _skipped(log.newest("num_skipped_updates"))),
    ]
    return element(
        "div",
        [
            element("div", element("span", name), element("strong", value), element("small", remark), class_="tile")
            for name, value, remark in tiles
        ],
        class_="tiles",
    )


def _settings(run: RunFolder) -> Element | None:
    settings = compare(run.record("args"))
    if not settings:
        return None
    changed = [setting for setting in settings if setting.origin]
    rows: list[Sequence[Child]] = [
        [element("code", s.name), element("b", shown(s.value)), shown(s.default), s.origin]
        for s in sorted(changed, key=lambda s: (s.origin.startswith("recipe"), s.name))
    ]
    rest = [
        element("div", element("dt", element("code", s.name)), element("dd", shown(s.value)))
        for s in settings
        if not s.origin
    ]
    title = f"{len(rest)} settings at their defaults" if changed else f"{len(rest)} settings"
    return _section(
        "Configuration",
        _table(["setting", "value", "default", "from"], rows) if rows else None,
        element(
            "details", element("summary", title), element("dl", rest, class_="columns"), open=None if changed else ""
        ),
    )


def _environment(run: RunFolder) -> Element | None:
    rows: list[Sequence[Child]] = [["id", run.env_id]] if run.env_id else []
    if run.env_spec is not None:
        rows += [["observation", str(leaf)] for leaf in run.env_spec.observation]
        rows += [["action", str(leaf)] for leaf in run.env_spec.action]
    elif run.out_log.env_spec:
        rows.append(["spaces", run.out_log.env_spec])
    return _facts("Environment", rows)


def _machine(run: RunFolder) -> Element | None:
    hardware = run.record("hardware")
    rows: list[Sequence[Child]] = []
    if hardware:
        rows += [["CPU", f"{hardware.get('cpu') or 'not known'}, {hardware.get('cores')} cores"]]
        rows += [["memory", _gib(hardware.get("memory_bytes"))]]
        rows += [["GPU", f"{gpu.get('name')}, {_gib(gpu.get('memory_bytes'))}"] for gpu in hardware.get("gpus") or []]
    if run.out_log.device:
        rows.append(["learner's device", run.out_log.device])
    return _facts("Hardware", rows)


def _source(run: RunFolder) -> Element | None:
    git, rows = run.record("git"), [[name, str(version)] for name, version in run.record("versions").items()]
    if git:
        changes = " with uncommitted changes" if git.get("is_dirty") else ""
        rows.append(["git commit", f"{str(git.get('commit'))[:12]} ({git.get('branch')}){changes}"])
    rows += [[f"SLURM {name.replace('_', ' ')}", str(value)] for name, value in run.record("slurm").items()]
    return _facts("Versions", rows)


def _checkpoints(run: RunFolder) -> Element | None:
    rows = [
        [file.name, "" if file.step is None else f"{file.step:,} steps", decimal(file.num_bytes)]
        for file in run.checkpoints
    ]
    return _facts("Checkpoints", rows)


def _messages(run: RunFolder) -> Element:
    log = run.out_log
    heading = f"{log.num_errors:,} errors, {log.num_warnings:,} warnings"
    if not log.messages:
        return _section("Warnings and errors", element("p", "None.", class_="empty"))
    kept = "" if len(log.messages) == log.num_errors + log.num_warnings else f"; the newest {len(log.messages)}"
    return _section(
        "Warnings and errors",
        element("p", heading + kept),
        element("ol", [element("li", _message(message)) for message in log.messages], class_="messages"),
    )


def _message(message: Message) -> list[Element]:
    meta = element("span", f"{message.level} {message.time} {message.logger}", class_=f"level {message.level.lower()}")
    return [meta, element("pre", "\n".join(message.lines))]


def _section(title: str, *content: Child) -> Element:
    return element("section", element("h2", title), content)


def _facts(title: str, rows: Sequence[Sequence[Child]]) -> Element | None:
    return _section(title, _table([], rows)) if rows else None


def _table(titles: Sequence[str], rows: Sequence[Sequence[Child]]) -> Element:
    head = element("thead", element("tr", [element("th", title) for title in titles])) if titles else None
    body = element("tbody", [element("tr", [element("td", cell) for cell in row]) for row in rows])
    return element("div", element("table", head, body), class_="scroll")


def _skipped(number: float | None) -> str:
    return f"{number:,.0f} skipped" if number else ""


def _value(value: float | None) -> str:
    return "-" if value is None else number_text(value)


def _gib(num_bytes: Any) -> str:
    return f"{num_bytes / GIB:,.0f} GiB" if isinstance(num_bytes, (int, float)) else "size not known"
