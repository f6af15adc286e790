"""The limit of open files is raised, or reported if it is too low, on systems with any limits."""

import logging
import resource

import pytest

from kubebeast_common.process import open_files


class Limits:
    """Soft and hard limit; setrlimit refuses a soft limit above `bound`."""

    def __init__(self, soft: int, hard: int, bound: int | None = None) -> None:
        self.values = (soft, hard)
        self._bound = bound

    def get(self, kind: int) -> tuple[int, int]:
        assert kind == resource.RLIMIT_NOFILE
        return self.values

    def set(self, kind: int, values: tuple[int, int]) -> None:
        if self._bound is not None and not 0 <= values[0] <= self._bound:
            raise ValueError("current limit exceeds maximum limit")
        self.values = values


def use(monkeypatch: pytest.MonkeyPatch, limits: Limits) -> Limits:
    monkeypatch.setattr(resource, "getrlimit", limits.get)
    monkeypatch.setattr(resource, "setrlimit", limits.set)
    return limits


def test_the_soft_limit_becomes_the_hard_one(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    limits = use(monkeypatch, Limits(1024, 20_000))
    open_files.make_room("max_streams", 4096)
    assert limits.values == (20_000, 20_000)
    assert not caplog.records


def test_a_limit_that_is_too_low_is_named_with_its_value_and_what_fits(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    use(monkeypatch, Limits(1024, 4096))
    with caplog.at_level(logging.WARNING):
        open_files.make_room("max_streams", 4096)
    (message,) = caplog.messages
    assert "max_streams = 4096 needs 4352 open files" in message and "may have 4096" in message
    assert "RLIMIT_NOFILE" in message and "lower max_streams to 3840" in message


def test_a_system_that_refuses_its_own_hard_limit_keeps_the_soft_one(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, Limits(256, resource.RLIM_INFINITY, bound=10_240))
    assert open_files.raise_limit() == 256


def test_no_limit_is_enough_for_everything(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    use(monkeypatch, Limits(resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    open_files.make_room("max_streams", 10**6)
    assert not caplog.records
