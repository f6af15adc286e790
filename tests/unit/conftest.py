"""Commands that only record their call; a native pool and a stream for the tests of the bindings and of inference."""

import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

import kubebeast_native as native
from kubebeast_common.cli.command import find_commands
from tests.unit.native.native_client import CORE_STATE_SIZE, NUM_LOGITS, Client, make_pool


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Returns the configurations that commands were started with."""
    configs: list[Any] = []

    def start(config: Any) -> int:
        configs.append(config)
        return 0

    for name in {command.target.partition(":")[0] for command in find_commands().values()}:
        module = ModuleType(name)
        for function in ("train", "learn", "run"):
            setattr(module, function, start)
        monkeypatch.setitem(sys.modules, module.__name__, module)
    return configs


@pytest.fixture
def pool() -> Iterator[native.ActorPool]:
    pool = make_pool()
    pool.start()
    pool.open(NUM_LOGITS, CORE_STATE_SIZE)
    yield pool
    pool.close()


@pytest.fixture
def client(pool: native.ActorPool) -> Iterator[Client]:
    client = Client(pool.address)
    client.hello()
    yield client
    client.close()
