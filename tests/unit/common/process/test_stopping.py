"""A stop is noticed even if its signal has not interrupted the wait."""

import os
import signal
import threading

from kubebeast_common.process.stopping import stop_on_signals


def test_a_signal_that_interrupts_no_wait_ends_it() -> None:
    with stop_on_signals("stopping") as stop:  # its thread handles the signal, as the main thread blocks it
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        ask = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGTERM))
        ask.start()
        try:
            stop.wait_for_signal()
        finally:
            ask.join()
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        assert stop.number == signal.SIGTERM
