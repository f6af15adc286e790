"""Files that a file reaches."""

from pathlib import Path

import pytest

from checks.reach import Reach

FILES = {
    "lib/pool/__init__.py": "",
    "lib/pool/__main__.py": "from pool import queue",
    "lib/pool/queue.py": "",
    "lib/pool/limits.py": "",
    "tests/__init__.py": "",
    "tests/helper.py": "from pool import limits",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def reached(root: Path, source: str) -> set[str]:
    """Returns the names of the files that a test with this source reaches, without itself and packages."""
    (root / "tests" / "test_it.py").write_text(source)
    found = Reach(root, [".", "lib"]).of(root / "tests" / "test_it.py")
    return {path.stem for path in found if path.name != "__init__.py"} - {"test_it"}


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("import pool.queue", {"queue"}),
        ("from pool import queue", {"queue"}),
        ("def f():\n    from pool.queue import Queue", {"queue"}),
        ("if TYPE_CHECKING:\n    import pool.limits\nelse:\n    import pool.queue", {"queue"}),
        ("from tests.helper import x", {"helper", "limits"}),
        ("words = ['python', '-m', 'pool']", {"__main__", "queue"}),
        ("words = [*('-m', 'pool'), '--flag']", {"__main__", "queue"}),
        ("env = 'pool.queue:Env-v0'", {"queue"}),
        ("name = f'{1} pool.queue:Env-v0'", {"queue"}),
        ("names = {'pool', 'numpy'}", set()),
        ("import numpy", set()),
        ("def f():\n    '''As pool.queue does.'''", set()),
    ],
)
def test_a_file_reaches_what_it_imports_starts_and_names(source: str, names: set[str], root: Path) -> None:
    assert reached(root, source) == names


def test_every_conftest_above_a_file_is_reached(root: Path) -> None:
    (root / "tests" / "conftest.py").write_text("import pool.limits")

    assert reached(root, "") == {"conftest", "limits"}
