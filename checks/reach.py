"""The files of the repository that a Python file reaches, through imports and through module names in strings.

Strings count because tests start `python -m PACKAGE` and name environments and models by import path.
"""

import ast
import functools
import itertools
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

_NAME = re.compile(r"[A-Za-z_]\w*(?:\.\w+)*")


class Reach:
    """The files that each file reaches.

    Args:
        root: Folder of the repository.
        roots: Folders below it in which Python finds modules, such as "services/learner".
    """

    def __init__(self, root: Path, roots: Iterable[str]) -> None:
        self._root = root
        self._roots = [root / folder for folder in roots]
        self._packages = {
            entry.name for folder in self._roots for entry in folder.iterdir() if (entry / "__init__.py").exists()
        } | {"tests", "benchmarks"}
        self._direct = functools.cache(self._read)

    def of(self, path: Path) -> set[Path]:
        """Returns all files that `path` reaches, directly or indirectly, and itself, relative to the repository."""
        found: set[Path] = set()
        waiting = [path, *self._conftests(path)]
        while waiting:
            current = waiting.pop()
            if current not in found:
                found.add(current)
                waiting.extend(self._direct(current))
        return {each.relative_to(self._root) for each in found}

    def _conftests(self, path: Path) -> Iterator[Path]:
        for folder in path.parents:
            if (conftest := folder / "conftest.py").exists() and folder.is_relative_to(self._root):
                yield conftest

    def _read(self, path: Path) -> set[Path]:
        names: set[str] = set()
        tree = _AtRunTime().visit(ast.parse(path.read_text(encoding="utf-8")))
        prose = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
            elif isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose:
                names |= {name for name in _NAME.findall(node.value) if "." in name}
            elif isinstance(node, ast.List | ast.Tuple):
                names |= set(_started(node.elts))
        return {file for name in names for file in self._files(name)}

    def _files(self, name: str) -> Iterator[Path]:
        """Yields the files of the module of that name and of the packages around it."""
        parts = name.split(".")
        if parts[0] not in self._packages:
            return
        for folder in self._roots:
            for end in range(1, len(parts) + 1):
                base = folder.joinpath(*parts[:end])
                yield from (file for file in (base / "__init__.py", base.with_suffix(".py")) if file.is_file())


class _AtRunTime(ast.NodeTransformer):
    """Removes imports that only type checkers see."""

    def visit_If(self, node: ast.If) -> ast.AST | list[ast.stmt]:
        self.generic_visit(node)
        return node.orelse if ast.unparse(node.test) == "TYPE_CHECKING" else node


def _started(words: list[ast.expr]) -> Iterator[str]:
    """Yields the module after each "-m" of a command, and its `__main__` for the case that it is a package."""
    texts = [word.value if isinstance(word, ast.Constant) else None for word in words]
    for dash_m, name in itertools.pairwise(texts):
        if dash_m == "-m" and isinstance(name, str):
            yield from (name, f"{name}.__main__")
