"""A finished command ends with its output, its hooks and its status, even if threads or processes remain."""

import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[4]
LEFT = {
    "a thread": "threading.Thread(target=threading.Event().wait).start()",
    "a process of multiprocessing": "multiprocessing.get_context('fork').Process(target=signal.pause).start()",
    "a hook that hangs": "atexit.register(threading.Event().wait)",
    "nothing": "",
}
LEAVES = """
import atexit, multiprocessing, signal, sys, threading
from kubebeast_common.process import leaving
from kubebeast_common.process.family import adopt_orphans, kill_descendants
leaving.THREADS_GRACE_S = leaving.HOOKS_GRACE_S = 0.2
adopt_orphans()
LEFT
atexit.register(print, "hook")
print("result")
leaving.leave(3, kill_descendants)
"""


@pytest.mark.parametrize("what", LEFT)
def test_what_an_environment_has_left_keeps_no_command(what: str) -> None:
    code = LEAVES.replace("LEFT", LEFT[what])
    result = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert (result.returncode, result.stdout, result.stderr) == (3, "result\nhook\n", "")


INTERRUPTED = """
import os, signal
from kubebeast_common.process.leaving import quiet_interrupts
with quiet_interrupts():
    print("importing", flush=True)
    while True:
        signal.pause()
"""


def test_ctrl_c_during_imports_prints_nothing() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None and process.stdout.readline() == "importing\n"
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (130, "")


def test_ctrl_c_on_a_terminal_ends_the_loop_of_a_shell() -> None:
    """The shell continues if a command catches SIGINT and exits, and stops if the command dies of the signal."""
    loop = f"for i in 1 2 3; do {sys.executable} -c '{INTERRUPTED}'; echo loop; done"
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(ROOT)
        os.execvp("bash", ["bash", "-c", loop])
    with os.fdopen(terminal, "r+b", buffering=0) as shell:
        text = b""
        while b"importing" not in text:
            text += shell.read(1000)
        shell.write(b"\x03")
        try:
            while chunk := shell.read(1000):
                text += chunk
        except OSError:  # the other end of the terminal is closed
            pass
    os.waitpid(pid, 0)
    assert text.count(b"importing") == 1 and b"loop" not in text
