"""Deadlines for waits without a timeout, such as that for a GPU with kernels that wait for another rank."""

import contextlib
import threading
from collections.abc import Callable, Iterator


class DeadlineError(TimeoutError):
    """An operation took too long and was aborted."""


@contextlib.contextmanager
def deadline(timeout_s: float, abort: Callable[[], object]) -> Iterator[None]:
    """Calls `abort`, in another thread, if the context lasts longer than timeout_s; `abort` must end the wait.

    In that case DeadlineError replaces the exception of the context, or its result. A context that ends earlier is
    never aborted afterwards.
    """
    lock = threading.Lock()
    is_over = is_late = False

    def expire() -> None:
        nonlocal is_late
        with lock:
            is_late = not is_over
        if is_late:
            abort()

    timer = threading.Timer(timeout_s, expire)
    timer.daemon = True
    timer.start()
    cause: Exception | None = None
    try:
        yield
    except Exception as error:
        cause = error
    finally:
        timer.cancel()
        with lock:
            is_over = True
    if is_late:
        raise DeadlineError(f"no answer for {timeout_s:g} s") from cause
    if cause is not None:
        raise cause
