"""The repository's documents as tests read them: prose, links, headings and fenced blocks of code."""

import functools
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
DOCUMENTS = sorted(
    [
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")),
        ROOT / "deploy" / "helm" / "kubebeast" / "README.md",
    ]
)
_FENCED = re.compile(
    r"^(?P<indent> *)```(?P<language>\w*)(?: title=\"(?P<title>[^\"]*)\")?\n(?P<text>.*?)^(?P=indent)```$",
    flags=re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block of code."""

    document: Path
    line: int
    language: str
    title: str
    """Title of the block on the site: the name of a file, or a requirement, e.g. "Needs a cluster"."""
    text: str
    """The code without the indentation of the fence."""

    def __str__(self) -> str:
        return f"{name(self.document)}:{self.line}"


@functools.cache
def repository_files() -> list[Path]:
    """Returns files that are committed or would be: tracked files, and new ones that git does not ignore."""
    command = ["git", "-C", str(ROOT), "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    names = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout.split("\0")
    return [ROOT / name for name in names if name and (ROOT / name).exists()]


def text_files() -> Iterator[tuple[Path, str]]:
    for path in filter(Path.is_file, repository_files()):
        try:
            yield path.relative_to(ROOT), path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue


def name(document: Path) -> str:
    return str(document.relative_to(ROOT))


def blocks(document: Path) -> Iterator[Block]:
    text = document.read_text(encoding="utf-8")
    for match in _FENCED.finditer(text):
        body = re.sub(rf"^{match['indent']}", "", match["text"], flags=re.MULTILINE)
        line = text.count("\n", 0, match.start()) + 1
        yield Block(document, line, match["language"], match["title"] or "", body)


def prose(document: Path) -> str:
    """Returns a document without its fenced blocks."""
    return _FENCED.sub("", document.read_text(encoding="utf-8"))


def links(document: Path) -> list[str]:
    """Returns the targets of a document's links within the repository."""
    without_code = re.sub(r"`[^`\n]*`", "``", prose(document))
    return [link for link in re.findall(r"\]\(([^)\s]+)\)", without_code) if ":" not in link]


def resolves(link: str, document: Path) -> bool:
    """Returns True if a link leads to a file and, if it has an anchor, to one of the file's headings."""
    path, _, anchor = link.partition("#")
    target = document.parent / path if path else document
    return target.exists() and (not anchor or anchor in anchors(target))


def anchors(document: Path) -> set[str]:
    """Returns the anchors of a document's headings in GitHub's form."""
    headings = re.findall(r"^#+ (.+)$", prose(document), flags=re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings}
