"""Env-servers for tests of the fleet as a vector environment: threads of this process, and their meeting address."""

from pathlib import Path
from typing import Any

from kubebeast_fleet import FleetVectorEnv
from tests.integration.envserver_learner import StreamThread

WELL = "tests.integration.envserver_faults:Well-v0"
PATIENCE_S = 60.0


def socket_address(folder: Path) -> str:
    """Returns an address without a listener yet; env-servers dial until there is one."""
    return f"unix:{folder / 'fleet.sock'}"


def stream(address: str, envs_per_stream: int = 1, **options: Any) -> StreamThread:
    return StreamThread(**{"env": WELL, "address": address, "envs_per_stream": envs_per_stream, **options})


def assert_books_balance(envs: FleetVectorEnv) -> None:
    """Asserts that every sampled step was delivered, each as one row, and none is in flight."""
    stats = envs.stats()
    assert stats["rows_step"] == stats["steps_delivered"] == stats["steps_sampled"]
    assert stats["steps_in_flight"] == 0
