"""A process ends with status 0 if it is asked to end."""

import subprocess
import sys

ENDS_SLOWLY = """
import os, signal, time
from kubebeast_envserver.stream.shutdown import Shutdown

class Slow:
    def __del__(self):
        time.sleep(0.3)

slow = Slow()
shutdown = Shutdown()
shutdown.install(grace_s=0.1)
os.kill(os.getpid(), signal.SIGTERM)
assert shutdown.wait(None)
"""


def test_a_process_that_takes_long_to_end_after_its_last_line_has_no_signal_as_its_status() -> None:
    assert subprocess.run([sys.executable, "-c", ENDS_SLOWLY], check=False).returncode == 0
