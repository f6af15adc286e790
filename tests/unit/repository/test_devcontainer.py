"""A target of this repository sets up the development container."""

import json
import re
from typing import Any

import pytest
import yaml

from tests.unit.repository.documents import ROOT
from tests.unit.repository.shell import make_targets


@pytest.fixture(scope="module")
def container() -> dict[str, Any]:
    """Returns devcontainer.json without its comments, which are on lines of their own."""
    text = (ROOT / ".devcontainer" / "devcontainer.json").read_text(encoding="utf-8")
    content: dict[str, Any] = json.loads(re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE))
    return content


def test_it_is_set_up_by_a_target(container: dict[str, Any]) -> None:
    program, target = container["postCreateCommand"].split()

    assert program == "make"
    assert target in make_targets()


def test_it_has_a_python_that_is_supported(container: dict[str, Any]) -> None:
    version = re.search(r":3\.(\d+)-", container["image"])

    assert version is not None
    assert 11 <= int(version[1]) <= 14


def test_it_forwards_the_ports_that_compose_publishes(container: dict[str, Any]) -> None:
    services = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))["services"].values()
    published = {int(port.split(":")[1]) for service in services for port in service.get("ports", [])}

    assert set(container["forwardPorts"]) == published
    assert set(map(int, container["portsAttributes"])) == published
