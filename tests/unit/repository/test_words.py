"""Prose is plain American technical English: the rates of words that mark a clumsy sentence have bounds."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.repository.documents import DOCUMENTS, ROOT, name, prose, repository_files

MARKS = {
    "what": r"what(?:ever)?",
    "where": r"where(?:ver|by)?",
    "who": r"who(?:ever|m|se)?|nobody|somebody|anybody|everybody",
    "tell": r"tells?|told|telling|says?|said|saying|hears?|heard|hearing",
    "if": r"if",
}
MOST_PER_1000 = {"what": 2.0, "where": 2.0, "who": 0.5, "tell": 0.5}
"""Largest rates. Cures: "if" for a condition, a noun for a clause, "send", "log", "receive" or "report" for speech."""
FEWEST_IFS_PER_1000 = 1.0
FEWEST_WORDS = 300
"""Smallest text that is checked: in shorter ones, a single word exceeds a bound."""
DOCUMENTS_OF_THE_PRESENT = [document for document in DOCUMENTS if document.name != "CHANGELOG.md"]
PACKAGES = [
    *(path for path in sorted((ROOT / "services").glob("*/kubebeast_*")) if path.name != "kubebeast_learner"),
    *sorted(path for path in (ROOT / "services/learner/kubebeast_learner").iterdir() if list(path.glob("*.py"))),
    *(ROOT / name for name in ("benchmarks", "checks", "deploy", "examples", "harness", "native/kubebeast_native")),
    *sorted(path for path in (ROOT / "tests").iterdir() if list(path.rglob("*.py"))),
]
"""Folders with docstrings that keep the bounds, each folder by itself."""
CPP_FOLDERS = [
    *sorted(path for path in (ROOT / "native/src/core").iterdir()),
    *(ROOT / "native" / name for name in ("src", "client", "fuzz")),
]
"""Folders whose comments keep the bounds, each for itself."""
COMMENTED = {
    "scripts": r"(scripts|docker|\.ci)/.*",
    "build": r"Makefile|native/.*(CMakeLists\.txt|\.cmake|\.supp)",
    "settings of tools": r".*\.(toml|in)|compose\.yaml|\.github/.*",
}
"""Names of files with comments after `#` that keep the bounds, each group by itself."""
CLUMSY_START = re.compile(r"(?:Of|What|Which|Whether|How|Where|Who|When|Why)\b")


def words(text: str) -> list[str]:
    without_code = re.sub(r"`[^`]*`", "", text)
    return re.findall(r"\b[A-Za-z][\w'-]*", re.sub(r"\]\([^)]*\)", "]", without_code))


def rate(mark: str, found: list[str]) -> float:
    """Returns the rate per 1 000 words."""
    matching = sum(re.fullmatch(MARKS[mark], word, flags=re.IGNORECASE) is not None for word in found)
    return round(1000 * matching / len(found), 1)


def faults(text: str) -> dict[str, float]:
    """Returns the rates per 1 000 words that are out of bounds; none for a short text."""
    found = words(text)
    if len(found) < FEWEST_WORDS:
        return {}
    rates = {mark: rate(mark, found) for mark in MARKS}
    high = {mark: rates[mark] for mark, most in MOST_PER_1000.items() if rates[mark] > most}
    return high if rates["if"] >= FEWEST_IFS_PER_1000 else {**high, "if": rates["if"]}


def clumsy_lines(text: str) -> str:
    """Returns the bounds that the text exceeds, each with the lines that have its words."""
    listed: list[str] = []
    for mark, found in faults(text).items():
        bound = f"at least {FEWEST_IFS_PER_1000}" if mark == "if" else f"at most {MOST_PER_1000[mark]}"
        listed.append(f"{mark}: {found} in 1 000 words, {bound} expected")
        listed += [
            f"    {line.strip()}" for line in text.splitlines() if mark != "if" and rate(mark, words(line) or [""])
        ]
    return "\n".join(listed)


def docstrings(folder: Path) -> Iterator[tuple[str, str]]:
    """Yields place and text of all string statements: docstrings of modules, classes, functions and fields."""
    for path in sorted([*folder.rglob("*.py"), *folder.rglob("*.pyi")]):
        if path.name.endswith(("_pb2.py", "_pb2_grpc.py")):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if (
                isinstance(node, ast.Expr)
                and isinstance(node.value, ast.Constant)
                and isinstance(node.value.value, str)
            ):
                yield f"{path.relative_to(ROOT)}:{node.lineno}", node.value.value


@pytest.mark.parametrize("document", DOCUMENTS_OF_THE_PRESENT, ids=name)
def test_documents_are_in_plain_words(document: Path) -> None:
    assert not clumsy_lines(prose(document))


@pytest.mark.parametrize("package", PACKAGES, ids=name)
def test_docstrings_are_in_plain_words(package: Path) -> None:
    found = dict(docstrings(package))

    assert found
    assert not clumsy_lines("\n".join(found.values()))
    assert [place for place, text in found.items() if CLUMSY_START.match(text.lstrip())] == []


@pytest.mark.parametrize("folder", CPP_FOLDERS, ids=name)
def test_comments_of_cpp_are_in_plain_words(folder: Path) -> None:
    files = [path for path in folder.rglob("*") if path.suffix in (".h", ".cc", ".c")]
    comments = [line for path in files for line in re.findall(r"//(.*)", path.read_text(encoding="utf-8"))]

    assert comments
    assert not clumsy_lines("\n".join(comments))


def test_comments_of_the_contracts_are_in_plain_words() -> None:
    contracts = list(ROOT.glob("protos/kubebeast_protos/v1/*.proto"))

    assert contracts
    for contract in contracts:
        assert not clumsy_lines("\n".join(re.findall(r"//(.*)", contract.read_text(encoding="utf-8"))))


@pytest.mark.parametrize("pattern", COMMENTED.values(), ids=COMMENTED)
def test_comments_of_scripts_are_in_plain_words(pattern: str) -> None:
    files = [path for path in repository_files() if re.fullmatch(pattern, name(path))]
    comments = [line for path in files for line in re.findall(r"(?:^|\s)#[# ](.*)", path.read_text(encoding="utf-8"))]

    assert comments
    assert not clumsy_lines("\n".join(comments))


@pytest.mark.parametrize(
    ("text", "clumsy"),
    [
        ("If a pod ends, its stream ends. " * 100, set()),
        ("What a pod tells is where it ends, if nobody waits. " * 100, {"tell", "what", "where", "who"}),
        ("A pod ends. " * 200, {"if"}),
        ("What a pod tells. ", set()),
        ("If a pod ends, `what` [it](what/where) sends ends. " * 100, set()),
    ],
)
def test_clumsy_prose_is_found(text: str, clumsy: set[str]) -> None:
    assert set(faults(text)) == clumsy


def test_a_finding_has_its_bound_and_its_lines() -> None:
    found = clumsy_lines("If a pod ends, its stream ends.\n" * 100 + "Nobody waits.")
    assert found.splitlines() == ["who: 1.4 in 1 000 words, at most 0.5 expected", "    Nobody waits."]
