"""The public API is the exports of five packages, and guides and examples import nothing else."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PUBLIC = (
    "kubebeast_learner",
    "kubebeast_learner.models",
    "kubebeast_learner.algorithm",
    "kubebeast_envserver",
    "kubebeast_fleet",
)
USERS_CODE = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/*.py")])
IMPORT = re.compile(r"^[ >]*((?:from|import) +kubebeast_(?!protos)\w+(?:[\w., ]+\([^)]*\)|.*))$", flags=re.MULTILINE)
"""Import statements, except those of kubebeast_protos, the generated contract, which is public as a whole."""


def imports(path: Path) -> Iterator[tuple[str, str]]:
    """Yields package and name of each KubeBeast import of a file; the name is "" for a package as a whole."""
    for statement in IMPORT.findall(path.read_text(encoding="utf-8")):
        for node in ast.parse(statement).body:
            if isinstance(node, ast.ImportFrom):
                yield from ((str(node.module), alias.name) for alias in node.names)
            elif isinstance(node, ast.Import):
                yield from ((alias.name, "") for alias in node.names)


@pytest.mark.parametrize("package", PUBLIC)
def test_every_public_name_is_there_and_explained(package: str) -> None:
    module = import_module(package)

    assert module.__doc__ and module.__all__ == sorted(module.__all__)
    exported = [getattr(module, name) for name in module.__all__]
    assert [item for item in exported if isinstance(item, type) and not item.__doc__] == []


@pytest.mark.parametrize("package", PUBLIC)
def test_a_name_that_is_not_public_is_missed_as_in_any_module(package: str) -> None:
    with pytest.raises(AttributeError, match=f"module '{package}' has no attribute 'learning_rat'"):
        import_module(package).learning_rat  # noqa: B018 - reading it is what fails


@pytest.mark.parametrize("package", ["kubebeast_learner", "kubebeast_envserver"])
def test_importing_a_package_loads_nothing_large(package: str) -> None:
    large = {"torch", "numpy", "gymnasium", "grpc", "tyro"}
    code = f"import sys; import {package}; print(*({large} & set(sys.modules)))"
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)

    assert process.stdout.strip() == ""


def test_guides_and_examples_import_nothing_but_public_names() -> None:
    found = {(path.name, *imported) for path in USERS_CODE for imported in imports(path)}
    deeper = [
        entry
        for entry in sorted(found)
        for _, package, name in [entry]
        if package not in PUBLIC or (name and name not in import_module(package).__all__)
    ]

    assert {name for name, *_ in found} >= {"impala_loop.py", "my_encoder.py", "my_loss.py", "my_net.py"}
    assert deeper == []
