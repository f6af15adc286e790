"""A sweep of learners looks after the broker that it runs."""

import contextlib
import os
import signal
import socket
import subprocess
from pathlib import Path

import pytest

from harness.ports import free_port
from kubebeast_common.settings import ConfigError
from kubebeast_sweep.processes import own_broker
from kubebeast_sweep.processes.own_broker import OUTPUT, BrokerError, OwnBroker


def test_an_address_in_use_is_refused_before_a_run_begins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_broker, "END_S", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        with pytest.raises(ConfigError, match=f"{address} is in use, .* --broker {address} shares its fleet"):
            OwnBroker(tmp_path, address)


def kill(broker: OwnBroker) -> None:
    os.kill(broker._process.pid, signal.SIGKILL)
    broker._process.wait()


def test_a_broker_that_dies_begins_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_broker, "_MIN_LIFE_S", 0.0)
    with contextlib.closing(OwnBroker(tmp_path, f"127.0.0.1:{free_port()}")) as broker:
        first = broker._process.pid
        broker.look()
        assert broker._process.pid == first
        kill(broker)
        broker.look()
        assert broker._process.pid != first and broker._process.poll() is None


def test_a_broker_that_ends_at_once_ends_the_sweep_with_its_message(tmp_path: Path) -> None:
    with contextlib.closing(OwnBroker(tmp_path, f"127.0.0.1:{free_port()}")) as broker:
        kill(broker)
        (tmp_path / OUTPUT).write_text("no memory\n")
        with pytest.raises(BrokerError, match=f"status {-signal.SIGKILL}: no memory"):
            broker.look()


def test_the_broker_of_a_sweep_ends_with_it(tmp_path: Path) -> None:
    with contextlib.closing(OwnBroker(tmp_path, f"127.0.0.1:{free_port()}")) as broker:
        process: subprocess.Popen[bytes] = broker._process
    assert process.poll() is not None
