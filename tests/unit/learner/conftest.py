"""Commands that only record their call."""

import sys
from types import ModuleType
from typing import Any

import pytest

from kubebeast_learner import cli


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Returns the configurations that commands were started with."""
    for name in ("UNROLL_LENGTH", "ENV", "XPID", "NAMESPACE", "RELEASE", "CONTEXT", "KUBECONFIG"):
        monkeypatch.delenv(f"KUBEBEAST_{name}", raising=False)
    configs: list[Any] = []

    def start(config: Any) -> int:
        configs.append(config)
        return 0

    for name in {command.target.partition(":")[0] for command in cli.COMMANDS.values()}:
        module = ModuleType(name)
        for function in ("train", "learn", "run"):
            setattr(module, function, start)
        monkeypatch.setitem(sys.modules, module.__name__, module)
    return configs
