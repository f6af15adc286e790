"""The guide to Kubernetes tells the truth: its commands, flags, values, settings, metrics and links exist."""

import dataclasses
import functools
import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubebeast_envserver.config import EnvServerConfig
from kubebeast_learner import cli
from kubebeast_learner.cli import COMMANDS
from kubebeast_learner.config import LearnerConfig
from kubebeast_learner.config_sources import setting_types
from kubebeast_learner.recipes import RECIPES
from kubebeast_learner.run_stats import Snapshot

ROOT = Path(__file__).resolve().parents[2]
GUIDE = ROOT / "docs" / "kubernetes.md"
CHART = ROOT / "deploy" / "helm" / "kubebeast"
Tree = dict[str, Any]

NAMESPACE = {"-n"}
HELM_VALUES = NAMESPACE | {"-f", "--set", "--set-json", "--wait", "--create-namespace"}
FLAGS = {
    "helm install": HELM_VALUES,
    "helm upgrade": HELM_VALUES,
    "helm rollback": NAMESPACE | {"--wait", "--force-conflicts"},
    "helm uninstall": NAMESPACE | {"--wait"},
    "helm test": NAMESPACE,
    "kubectl cp": NAMESPACE,
    "kubectl create": NAMESPACE | {"--from-literal", "--from-file", "--cert", "--key", "--dry-run", "-o", "--help"},
    "kubectl delete": NAMESPACE | {"--cascade"},
    "kubectl describe": NAMESPACE,
    "kubectl drain": NAMESPACE,
    "kubectl exec": NAMESPACE,
    "kubectl get": NAMESPACE | {"-o", "--raw"},
    "kubectl logs": NAMESPACE | {"-f", "--previous"},
    "kubectl patch": NAMESPACE | {"-p"},
    "kubectl port-forward": NAMESPACE,
    "kubectl replace": NAMESPACE | {"-f"},
    "kubectl rollout": NAMESPACE,
    "kubectl scale": NAMESPACE | {"--replicas"},
    "kubectl top": NAMESPACE,
}
"""Flags of Helm 3.8 and 4, and of kubectl 1.20 and newer; rollback --force-conflicts is of Helm 4 alone."""


def guide() -> str:
    return GUIDE.read_text(encoding="utf-8")


def prose() -> str:
    """The guide without its fenced blocks."""
    return re.sub(r"^```.*?^```$", "", guide(), flags=re.MULTILINE | re.DOTALL)


def blocks() -> list[str]:
    """Indented code, without what is deeper than the text around it."""
    found = re.findall(r"(?:^ {4,}\S.*\n)+", prose(), flags=re.MULTILINE)
    return [re.sub(rf"^ {{{len(block) - len(block.lstrip())}}}", "", block, flags=re.MULTILINE) for block in found]


def schema() -> Tree:
    return dict(json.loads((CHART / "values.schema.json").read_text(encoding="utf-8")))


def blocks_of_values() -> list[str]:
    return [block for block in blocks() if block.partition(":")[0] in schema()["properties"]]


def commands() -> list[list[str]]:
    """Words of every command that the guide shows, alone, in a pipe, or in a pod."""
    shown = [block for block in blocks() if block not in blocks_of_values() and not block.startswith("FROM ")]
    lines = "\n".join(shown).replace("\\\n", " ").splitlines()
    lines += re.findall(r"`((?:helm|kubectl|kubebeast) [^`]+)`", prose())
    return [words for line in lines for words in _split(line)]


def _split(line: str) -> Iterator[list[str]]:
    for part in re.split(r" \| | && |; |\$\(| -- ", line.replace("$'\\n'", "")):
        words = shlex.split(part.rstrip(")").replace('"', ""), comments=True)
        if words and words[0] in ("helm", "kubectl", "kubebeast"):
            yield words


def of_tool(*tools: str) -> list[str]:
    """Commands of these tools, each once."""
    return sorted({shlex.join(words) for words in commands() if words[0] in tools})


def unknown_keys(values: Any, node: Tree, root: Tree, where: str = "") -> list[str]:
    """Paths of keys that the schema does not have."""
    while "$ref" in node:
        node = functools.reduce(lambda place, key: place[key], node["$ref"].split("/")[1:], root)
    if isinstance(values, list):
        items = node.get("items", {})
        return [
            key for index, value in enumerate(values) for key in unknown_keys(value, items, root, f"{where}[{index}]")
        ]
    if not isinstance(values, dict):
        return []
    unknown = []
    for key, value in values.items():
        path, known = f"{where}.{key}".lstrip("."), node.get("properties", {})
        if key in known:
            unknown += unknown_keys(value, known[key], root, path)
        elif node.get("additionalProperties", True) is False:
            unknown.append(path)
    return unknown


def has_path(path: str) -> bool:
    nested: Any = None
    for key in reversed(path.split(".")):
        nested = {key: nested}
    return not unknown_keys(nested, schema(), schema())


def settings() -> set[str]:
    return set(setting_types(LearnerConfig)) | set(setting_types(EnvServerConfig))


def accept(config: object) -> int:
    """Stands for every command."""
    return 0


def test_the_guide_shows_commands_and_values() -> None:
    assert len(of_tool("helm", "kubectl")) > 20
    assert len(of_tool("kubebeast")) > 4
    assert len(blocks_of_values()) > 5


@pytest.mark.parametrize("line", of_tool("helm", "kubectl"))
def test_every_flag_of_helm_and_kubectl_exists(line: str) -> None:
    tool, *words = re.sub(r"^kubectl -n \S+", "kubectl", line).split()
    flags = {word.partition("=")[0] for word in words if re.match("--?[a-z]", word)}

    assert flags <= FLAGS[f"{tool} {words[0]}"]


@pytest.mark.parametrize("line", of_tool("kubebeast"))
def test_every_command_of_kubebeast_is_accepted(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, command in COMMANDS.items():
        monkeypatch.setitem(cli.COMMANDS, name, dataclasses.replace(command, target=f"{__name__}:{accept.__name__}"))

    assert cli.main(shlex.split(line)[1:]) == 0


@pytest.mark.parametrize("block", blocks_of_values())
def test_every_block_of_values_has_keys_of_the_chart_alone(block: str) -> None:
    assert unknown_keys(yaml.safe_load(block), schema(), schema()) == []


def test_every_value_that_is_named_exists() -> None:
    sections = "|".join(schema()["properties"])
    paths = set(re.findall(rf"`((?:{sections})(?:\.\w+)+)`", prose()))
    paths |= {name for line in of_tool("helm") for name in re.findall(r"--set(?:-json)? ([\w.]+)=", line)}

    assert len(paths) > 15
    assert [path for path in sorted(paths) if not has_path(path)] == []


def test_a_value_that_does_not_exist_would_be_found() -> None:
    assert has_path("learner.config.total_steps")
    assert not has_path("learner.config.total_step")
    assert unknown_keys({"envservers": [{"name": "a", "replica": 1}]}, schema(), schema()) == ["envservers[0].replica"]


def test_every_setting_and_metric_that_is_named_exists() -> None:
    sources = [*(ROOT / "services").rglob("metrics.py"), CHART / "rules" / "kubebeast.yaml"]
    exported = "\n".join(path.read_text(encoding="utf-8") for path in sources)
    names = set(re.findall(r"`([a-z]+(?:_[a-z]+)+)`", prose()))
    metrics = {name for name in names if name.startswith("kubebeast_")}

    assert metrics
    assert [name for name in sorted(metrics) if not re.search(rf"\b{name}\b", exported)] == []
    assert names - metrics
    assert names - metrics <= settings() | set(setting_types(Snapshot))


def test_every_recipe_is_named() -> None:
    assert [recipe.name for recipe in RECIPES if f"`{recipe.name}`" not in guide()] == []


def test_every_link_resolves() -> None:
    links = [link for link in re.findall(r"\]\(([^)\s]+)\)", prose()) if "://" not in link]

    assert links
    assert [link for link in links if not resolves(link)] == []


def resolves(link: str) -> bool:
    name, _, anchor = link.partition("#")
    path = GUIDE.parent / name if name else GUIDE
    if not path.exists():
        return False
    headings = re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), flags=re.MULTILINE) if anchor else []
    return not anchor or anchor in {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings}


def test_every_file_of_a_command_exists() -> None:
    paths = set(re.findall(r"(?<![\w/.])((?:deploy|docker|services|protos)/[\w./-]+)", "\n".join(blocks())))

    assert paths
    assert [path for path in sorted(paths) if not (ROOT / path.rstrip(".")).exists()] == []
