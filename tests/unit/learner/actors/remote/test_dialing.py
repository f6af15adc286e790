"""The addresses that the pool dials follow the DNS records of the names."""

import queue
from collections.abc import Sequence

import pytest

from kubebeast_common.access.addresses import resolve
from kubebeast_learner.actors.remote.dialing import Dialer

PATIENCE_S = 60.0
Endpoints = Sequence[tuple[str, str]]


class Pool:
    """Records the endpoints to dial, in order."""

    def __init__(self) -> None:
        self._told: queue.SimpleQueue[Endpoints] = queue.SimpleQueue()

    def dial(self, endpoints: Endpoints) -> None:
        self._told.put(list(endpoints))

    def next_endpoints(self) -> Endpoints:
        return self._told.get(timeout=PATIENCE_S)


class Names:
    """A DNS with records that tests change; `asked` lists the resolved hosts."""

    def __init__(self, **records: Sequence[str]) -> None:
        self.records = records
        self.asked: queue.SimpleQueue[str] = queue.SimpleQueue()

    def resolve(self, host: str) -> Sequence[str]:
        self.asked.put(host)
        if host not in self.records:
            raise OSError(f"no such name: {host}")
        return self.records[host]


def dialer(pool: Pool, names: Names, *targets: str, max_endpoints: int = 100) -> Dialer:
    return Dialer(pool.dial, targets, max_endpoints=max_endpoints, resolve=names.resolve, interval_s=0.001)


def test_every_record_and_every_port_is_dialed_under_the_names_certificate() -> None:
    pool, names = Pool(), Names(fleet=["10.0.0.2", "10.0.0.1"])
    with dialer(pool, names, "fleet:7000-7001"):
        assert pool.next_endpoints() == [
            ("10.0.0.1:7000", "fleet"),
            ("10.0.0.1:7001", "fleet"),
            ("10.0.0.2:7000", "fleet"),
            ("10.0.0.2:7001", "fleet"),
        ]


def test_an_address_stands_for_itself_and_its_certificate_names_it() -> None:
    pool = Pool()
    with Dialer(pool.dial, ["127.0.0.1:1", "[::1]:2"], max_endpoints=9):
        assert pool.next_endpoints() == [("127.0.0.1:1", ""), ("[::1]:2", "")]


def test_the_pool_hears_of_new_records_and_of_nothing_else() -> None:
    pool, names = Pool(), Names(fleet=["10.0.0.1"])
    with dialer(pool, names, "fleet:1"):
        assert pool.next_endpoints() == [("10.0.0.1:1", "fleet")]
        for _ in range(5):
            names.asked.get(timeout=PATIENCE_S)
        names.records["fleet"] = ["10.0.0.1", "10.0.0.2"]
        assert pool.next_endpoints() == [("10.0.0.1:1", "fleet"), ("10.0.0.2:1", "fleet")]
        names.records["fleet"] = []
        assert pool.next_endpoints() == []


def test_a_name_without_an_answer_keeps_its_addresses_and_is_complained_of_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    pool, names = Pool(), Names(fleet=["10.0.0.1"], other=["10.0.1.1"])
    with dialer(pool, names, "fleet:1", "other:1"):
        assert len(pool.next_endpoints()) == 2
        del names.records["fleet"]
        for _ in range(20):
            names.asked.get(timeout=PATIENCE_S)
        names.records["other"] = ["10.0.1.2"]
        assert pool.next_endpoints() == [("10.0.0.1:1", "fleet"), ("10.0.1.2:1", "other")]
    assert [message for message in caplog.messages if "no such name" in message] == [
        "fleet cannot be resolved, asking again: no such name: fleet"
    ]


def test_what_cannot_be_a_name_harms_no_other_target() -> None:
    pool = Pool()
    with Dialer(pool.dial, [f"{'x' * 64}.example:1", "127.0.0.1:1"], max_endpoints=9):
        assert pool.next_endpoints() == [("127.0.0.1:1", "")]


def test_no_more_are_dialed_than_may_stream(caplog: pytest.LogCaptureFixture) -> None:
    pool, names = Pool(), Names(fleet=["10.0.0.1"])
    with dialer(pool, names, "fleet:1-65535", max_endpoints=3):
        assert len(pool.next_endpoints()) == 3
    assert "dialing 3 of 65535 addresses; see --max-streams" in caplog.text


def test_nothing_is_dialed_after_the_end() -> None:
    pool, names = Pool(), Names(fleet=["10.0.0.1"])
    thread = dialer(pool, names, "fleet:1")
    with thread:
        pool.next_endpoints()
    thread.join(PATIENCE_S)
    assert not thread.is_alive()


def test_a_host_of_both_families_is_dialed_once() -> None:
    assert resolve("localhost") == ["127.0.0.1"]
    assert resolve("::1") == ["::1"]
    with pytest.raises(OSError, match="not known"):
        resolve("no-such-host.invalid")
