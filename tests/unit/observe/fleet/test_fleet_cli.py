"""`kubebeast fleet` parses its command line and calls the right function."""

import sys
from pathlib import Path
from typing import Any

import pytest

from kubebeast_common.cli import main as cli
from kubebeast_observe.settings import FleetConfig, FleetScaleConfig


def test_fleet_and_fleet_scale_are_two_commands(started: list[Any]) -> None:
    cli.main(["fleet", "-n", "train", "--watch"])
    cli.main(["fleet", "scale", "atari", "8", "-n", "train", "--kubeconfig", "file"])
    assert started == [
        FleetConfig(namespace="train", watch=True),
        FleetScaleConfig(group="atari", replicas=8, namespace="train", kubeconfig=Path("file").absolute()),
    ]


def test_the_namespace_may_come_from_the_environment(started: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBEBEAST_NAMESPACE", "train")
    cli.main(["fleet"])
    assert started == [FleetConfig(namespace="train")]


@pytest.mark.parametrize("package", ["kubernetes", "urllib3"])
def test_a_missing_kubernetes_package_is_explained(
    package: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in [name for name in sys.modules if name.startswith(("kubernetes", "kubebeast_observe.fleet"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    assert cli.main(["fleet"]) == 1
    assert capsys.readouterr().err == "kubebeast fleet: the package kubernetes is missing: pip install kubernetes\n"
