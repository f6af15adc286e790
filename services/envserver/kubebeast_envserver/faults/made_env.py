"""An environment with the processes that it has started, such as a simulator."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from kubebeast_common.process.family import Family

EnvT = TypeVar("EnvT")
EnvT_co = TypeVar("EnvT_co", covariant=True)


@dataclass(frozen=True, slots=True)
class MadeEnv(Generic[EnvT_co]):
    """An environment and what its constructor and its first reset have started."""

    env: EnvT_co
    processes: Family


def make_with_processes(make: Callable[[], EnvT]) -> MadeEnv[EnvT]:
    """Makes an environment; if that fails, kills the processes that it has started."""
    processes = Family()
    try:
        with processes.adding():
            return MadeEnv(make(), processes)
    except BaseException:
        processes.kill()
        raise
