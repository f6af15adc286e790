"""The guide for users of TorchBeast is correct: its commands, flags, defaults, names and tests exist."""

import dataclasses
import pkgutil
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kubebeast_common.cli import main as cli
from kubebeast_common.cli.command import find_commands
from kubebeast_common.cli.settings import setting_types, visible_fields
from kubebeast_envserver import config as envserver

ROOT = Path(__file__).resolve().parents[3]
GUIDE = ROOT / "docs" / "from-torchbeast.md"
ENVSERVER = "kubebeast-envserver"
FLAG = re.compile(r"(?<![\w-])--([a-z][a-z-]*)")
TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`|`(native/[\w/]+\.cc): (\w+)\.(\w+)`")


def without_theirs(text: str) -> str:
    """Returns the guide without the first column of its tables, which is TorchBeast's."""
    return re.sub(r"^\|(?:[^|`]|`[^`]*`)*\|", "|", text, flags=re.MULTILINE)


def guide() -> str:
    return without_theirs(GUIDE.read_text(encoding="utf-8"))


def runnable_lines() -> list[str]:
    blocks = re.findall(r"```sh\n(.*?)```", guide(), flags=re.DOTALL)
    return [line for block in blocks for line in block.splitlines()]


def defaults() -> Iterator[tuple[str, Any]]:
    """Yields name and default of every setting, once for every command that has it."""
    for field in dataclasses.fields(envserver.EnvServerConfig):
        yield field.name, field.default
    for command in find_commands().values():
        yield from _defaults(command.config_type)


def _defaults(config_type: Any) -> Iterator[tuple[str, Any]]:
    for field in visible_fields(config_type):
        if dataclasses.is_dataclass(field.type):
            yield from _defaults(field.type)
        else:
            yield field.name, field.default


def written(default: object) -> str:
    """Returns a default in the notation of the guide."""
    if isinstance(default, bool):
        return "`on`" if default else "`off`"
    if default == "":
        return "empty"
    words = default if isinstance(default, tuple) else [default]
    return "`" + " ".join(f"{word:.12g}" if isinstance(word, float) else str(word) for word in words) + "`"


def accept(config: object) -> int:
    """Replaces every command."""
    return 0


@pytest.mark.parametrize("line", runnable_lines())
def test_every_command_line_is_accepted(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    program, *words = shlex.split(line)
    if program == ENVSERVER:
        envserver.parse(words, {})
        return
    assert program == "kubebeast"
    command = dataclasses.replace(find_commands()[words[0]], target=f"{__name__}:{accept.__name__}")
    monkeypatch.setitem(find_commands(), words[0], command)
    assert cli.main(words) == 0


def test_every_command_is_shown_in_a_line_to_run() -> None:
    shown = {tuple(line.split()[:2]) for line in runnable_lines()}
    of_kubernetes = {"fleet", "fleet scale"}
    assert {("kubebeast", name) for name in find_commands().keys() - of_kubernetes} <= shown
    assert any(words[0] == ENVSERVER for words in shown)


def test_every_flag_is_a_setting_of_a_command() -> None:
    known = {name for name, _ in defaults()}.union(*(setting_types(c.config_type) for c in find_commands().values()))
    known |= {"config", "recipe"}
    named = {flag.replace("-", "_") for flag in FLAG.findall(guide())}
    assert len(named) > 40
    assert named <= known


def test_every_default_is_the_one_the_code_has() -> None:
    found: dict[str, set[str]] = {}
    for name, default in defaults():
        found.setdefault(name, set()).add(written(default))
    rows = re.findall(r"^\| `--([a-z-]+)` \| (`[^`]*`|empty) \|", guide(), flags=re.MULTILINE)
    assert len(rows) > 30
    wrong = [(name, default) for name, default in rows if default not in found[name.replace("-", "_")]]
    assert wrong == []


def test_every_name_can_be_imported() -> None:
    names = re.findall(r"`(kubebeast_\w+(?:\.\w+)+)`", guide())
    assert len(names) > 30
    for name in names:
        pkgutil.resolve_name(name)


def test_every_file_exists() -> None:
    links = [link for link in re.findall(r"\]\(([^)#\s]+)\)", guide()) if "://" not in link]
    paths = re.findall(r"`((?:tests|native)/[\w/]+\.\w+)`", guide())
    assert len(links) > 30
    assert [link for link in links if not (GUIDE.parent / link).exists()] == []
    assert [path for path in paths if not (ROOT / path).is_file()] == []


def test_every_test_exists() -> None:
    tests = TEST.findall(guide())
    assert len(tests) > 60
    assert len(tests) == len(re.findall(r"(?:::|: )\w+(?:\.\w+)?`", guide()))
    missing = []
    for file, function, cc_file, suite, name in tests:
        text = (ROOT / (file or cc_file)).read_text(encoding="utf-8")
        pattern = rf"^def {function}\(" if file else rf"^TEST(?:_F|_P)?\({suite}, {name}\)"
        if re.search(pattern, text, flags=re.MULTILINE) is None:
            missing.append(function or f"{suite}.{name}")
    assert missing == []


def test_every_row_of_behaviours_and_defects_names_a_test() -> None:
    text = GUIDE.read_text(encoding="utf-8")
    for heading in ("What TorchBeast's tests cover", "Defects of TorchBeast that are fixed"):
        section = text.split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]
        rows = [line for line in section.splitlines() if line.startswith("|")][2:]
        assert len(rows) > 10
        assert [row for row in rows if TEST.search(row) is None] == []
