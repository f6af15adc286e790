"""The end of a process is noticed even if its fork holds its pipes open."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[4]
FOLLOWS = """
import os, sys
from kubebeast_common.process.waiting import wait_for_end_of_parent
print("waiting", flush=True)
wait_for_end_of_parent(int(sys.argv[1]), 0)
print("noticed", flush=True)
"""
PARENT = f"""
import os, signal, subprocess, sys
follower = subprocess.Popen([sys.executable, "-c", {FOLLOWS!r}, str(os.getpid())], stdin=subprocess.PIPE)
if os.fork() == 0:
    os.close(1)
    print(os.getpid(), file=sys.stderr, flush=True)
    signal.pause()
signal.pause()
"""


def test_a_parent_whose_fork_holds_the_pipe_is_noticed() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PARENT], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None and parent.stderr is not None
        fork = int(parent.stderr.readline())
        assert parent.stdout.readline() == "waiting\n"
        parent.kill()
        assert parent.stdout.readline() == "noticed\n"
        os.kill(fork, 9)
