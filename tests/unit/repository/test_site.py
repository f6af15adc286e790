"""The website of the guides builds without a warning, and all links of the documents resolve."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.repository.documents import DOCUMENTS, ROOT, links, name, resolves


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Builds the website as `make docs` builds it."""
    folder = tmp_path_factory.mktemp("site")
    environ = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    built = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, timeout=240)
    assert built.returncode == 0, built.stderr
    return folder


def test_the_first_page_is_the_readme(site: Path) -> None:
    assert "Distributed reinforcement learning with IMPALA" in (site / "index.html").read_text(encoding="utf-8")


def test_the_api_reference_has_the_docstrings(site: Path) -> None:
    page = (site / "api" / "models.html").read_text(encoding="utf-8")

    assert "kubebeast_learner.models.ModelInputs" in page
    assert "received on arrival at the row" in page


def test_files_that_guides_link_come_with_the_site(site: Path) -> None:
    copies = site / "files" / "protos" / "kubebeast_protos" / "v1" / "actor_pool.proto.txt"

    assert "service ActorPool" in copies.read_text(encoding="utf-8")


@pytest.mark.parametrize("document", DOCUMENTS, ids=name)
def test_every_link_of_a_document_resolves(document: Path) -> None:
    assert [link for link in links(document) if not resolves(link, document)] == []
