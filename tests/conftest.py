"""Settings of all tests, and the fixture of the two transports."""

import signal
import sys
from collections.abc import Iterator

import pytest

from harness.pytest_settings import nameless_log_lines

__all__ = ["nameless_log_lines", "transport"]

signal.signal(signal.SIGHUP, signal.SIG_DFL)
"""Under `nohup pytest`, the processes that tests start would else inherit an ignored SIGHUP."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Moves the modules that are marked slow to the front: begun at the end, one would run while other workers idle."""

    def begins_later(item: pytest.Item) -> bool:
        module = item.getparent(pytest.Module)
        return module is None or all(mark.name != "slow" for mark in module.own_markers)

    items.sort(key=begins_later)


@pytest.fixture(autouse=True)
def forget_temporary_modules(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Removes imported modules that are files of the test, and their environments: others may have the same names."""
    before = set(sys.modules)
    yield
    folder = str(tmp_path_factory.getbasetemp())
    forgotten = {
        name for name in set(sys.modules) - before if str(getattr(sys.modules[name], "__file__", "")).startswith(folder)
    }
    for name in forgotten:
        del sys.modules[name]
    if forgotten and "gymnasium" in sys.modules:
        import gymnasium

        for env_id, spec in list(gymnasium.registry.items()):
            module = getattr(spec.entry_point, "__module__", str(spec.entry_point).partition(":")[0])
            if module in forgotten:
                del gymnasium.registry[env_id]


@pytest.fixture(scope="module", params=["native", "grpcio"])
def transport(request: pytest.FixtureRequest) -> Iterator[str]:
    """Sets the transport of the streams that env-servers dial, in this process and in processes that it starts."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KUBEBEAST_TRANSPORT", request.param)
        if request.param == "grpcio":
            patch.setitem(sys.modules, "kubebeast_native", None)  # as if it were not installed
        yield request.param
