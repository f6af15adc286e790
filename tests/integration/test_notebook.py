"""The notebook of examples/ runs from its first cell to its last, except for the one that installs the package."""

import os
import re
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from nbformat import NotebookNode

NOTEBOOK = Path(__file__).resolve().parents[2] / "examples" / "learn_catch.ipynb"
LEARNT = 0.2
"""Mean return of twenty games; the best is 1, and a random player reaches this once in 10 000 times."""


def read() -> NotebookNode:
    notebook: NotebookNode = nbformat.read(NOTEBOOK, as_version=4)  # type: ignore[no-untyped-call]
    return notebook


def cells(notebook: NotebookNode) -> dict[str, NotebookNode]:
    """Returns the cells with code, by their ids."""
    return {cell.id: cell for cell in notebook.cells if cell.cell_type == "code"}


def test_the_committed_notebook_has_no_outputs() -> None:
    assert cells(read())
    assert all(cell.outputs == [] and cell.execution_count is None for cell in cells(read()).values())


def test_only_the_cell_that_installs_the_package_is_left_out() -> None:
    """By the tag that nbclient knows."""
    left_out = [cell for cell in cells(read()).values() if "skip-execution" in cell.metadata.get("tags", [])]

    assert [cell.source for cell in left_out] == ["%pip install --quiet kubebeast"]


@pytest.mark.slow
def test_it_trains_an_agent_that_plays_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    notebook = read()

    NotebookClient(notebook, timeout=500, resources={"metadata": {"path": str(tmp_path)}}).execute()

    outputs = {name: cell.outputs for name, cell in cells(notebook).items()}
    assert "image/png" in outputs["curve"][-1].data
    assert "image/gif" in outputs["game"][-1].data
    score = re.search(r"mean ± std\W+(-?\d\.\d+)", "".join(output.text for output in outputs["score"]))
    assert score is not None
    assert float(score[1]) >= LEARNT
