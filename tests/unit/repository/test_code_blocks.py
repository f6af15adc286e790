"""Every block of code in the documents is checked, or names its needs: a cluster, a GPU, an account."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.unit.repository import shell
from tests.unit.repository.chart_values import are_values, complaints
from tests.unit.repository.documents import DOCUMENTS, ROOT, Block, blocks, name, prose

BLOCKS = [block for document in DOCUMENTS for block in blocks(document)]
LANGUAGES = {"", "dockerfile", "ini", "json", "promql", "python", "sh", "text", "yaml"}
"""Languages of blocks. The first and `text` are pictures, messages and formulas, which are not run."""


def of_language(language: str) -> list[Block]:
    return [block for block in BLOCKS if block.language == language]


def needs_what_a_test_has_not(block: Block) -> bool:
    """Returns True if the block's title or a comment at the top of its document, `<!-- needs: a cluster -->`, names a
    need.
    """
    return block.title.startswith("Needs ") or "<!-- needs: " in block.document.read_text(encoding="utf-8")


def values_within(document: Any) -> Iterator[Any]:
    """Yields chart values: the document itself, or the values in an object of a GitOps controller."""
    if are_values(document):
        yield document
    elif isinstance(document, dict) and document.get("kind") == "Application":
        yield document["spec"].get("source", {}).get("helm", {}).get("valuesObject", {})
    elif isinstance(document, dict) and document.get("kind") == "HelmRelease":
        yield document["spec"].get("values", {})


def test_every_block_has_a_language_that_is_checked() -> None:
    assert [str(block) for block in BLOCKS if block.language not in LANGUAGES] == []


@pytest.mark.parametrize("block", of_language("sh"), ids=str)
def test_every_command_is_accepted_by_its_program(block: Block) -> None:
    found = [(" ".join(words), shell.complaint(words)) for words in shell.commands(block.text)]

    assert found
    assert [(command, complaint) for command, complaint in found if complaint] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=name)
def test_every_command_in_a_sentence_exists_with_its_flags(document: Path) -> None:
    spans = [" ".join(span.split()) for span in re.findall(r"`kubebeast ([a-z][^`:]*)`", prose(document))]
    found = {span: shell.unknown_in(span.split()) for span in spans}

    assert {span: unknown for span, unknown in found.items() if unknown} == {}


@pytest.mark.parametrize(
    ("words", "unknown"),
    [
        ("eval --xpid pong", ""),
        ("fleet scale", ""),
        ("evaluate --xpid pong", "evaluate"),
        ("train --environment=a --steps", "--environment=a, --steps"),
    ],
)
def test_a_slip_in_a_sentence_is_noticed(words: str, unknown: str) -> None:
    assert shell.unknown_in(words.split()) == unknown


@pytest.mark.parametrize("block", of_language("sh"), ids=str)
def test_what_a_test_cannot_run_says_what_it_needs(block: Block) -> None:
    elsewhere = {words[0] for words in shell.commands(block.text)} & shell.ELSEWHERE

    assert not elsewhere or needs_what_a_test_has_not(block)


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("pip install 'kubebeast-envserver[atari]'", ""),
        ("pip install 'kubebeast-envserver[pong]'", "kubebeast-envserver has no extra pong"),
        ("pip install kubebeast-pong", "no distribution kubebeast-pong"),
        ("helm install a oci://ghcr.io/b/charts/kubebeast --set demo.enabled=true", ""),
        ("helm install a oci://ghcr.io/b/charts/kubebeast --set demo.on=true", "the chart has no value demo.on=true"),
        ("helm install a oci://ghcr.io/b/kubebeast", "which chart is oci://ghcr.io/b/kubebeast?"),
        ("kubebeast train --environment a", "exit status 2"),
        ("native/build/tsan/kubebeast_tests --gtest_filter=*Pool*", ""),
        ("native/build/msan/kubebeast_tests", "nothing builds it"),
    ],
)
def test_a_slip_in_a_command_is_noticed(line: str, complaint: str) -> None:
    assert [shell.complaint(words) for words in shell.commands(line)] == [complaint]


@pytest.mark.parametrize("block", of_language("yaml"), ids=str)
def test_helm_would_take_every_value_of_the_chart(block: Block) -> None:
    documents = list(yaml.safe_load_all(block.text))
    values = [tree for document in documents for tree in values_within(document)]

    assert all(documents)
    assert [complaint for tree in values for complaint in complaints(tree)] == []


@pytest.mark.parametrize("block", of_language("python"), ids=str)
def test_every_python_block_compiles_and_imports_names_that_exist(block: Block) -> None:
    lines = re.findall(r"^(?:from|import) kubebeast_.*$", block.text, flags=re.MULTILINE)

    compile(block.text, str(block), "exec", dont_inherit=True)
    exec("\n".join(lines), {})


@pytest.mark.parametrize("block", [block for block in BLOCKS if "/" in block.title], ids=str)
def test_an_excerpt_is_what_its_file_holds(block: Block) -> None:
    assert block.text.strip() in (ROOT / block.title).read_text(encoding="utf-8")


@pytest.mark.parametrize("block", of_language("json"), ids=str)
def test_every_json_block_is_json(block: Block) -> None:
    text = block.text.strip()

    json.loads(text if text.startswith("{") else f"{{{text}}}")


@pytest.mark.parametrize("block", of_language("dockerfile"), ids=str)
def test_every_image_of_ones_own_is_derived_from_ours(block: Block) -> None:
    assert re.match(r"FROM (?:registry\.example\.com/)?kubebeast/(?:envserver|learner):", block.text)
