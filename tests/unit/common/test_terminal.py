"""Keys do not disturb a table that is redrawn in place."""

import io
import os
import pty
import sys
import termios
from pathlib import Path

from kubebeast_common.terminal import without_echo

ROOT = Path(__file__).resolve().parents[3]
READS = """
import sys
from kubebeast_common.terminal import without_echo
with without_echo(sys.stdout):
    print("begins", flush=True)
    first = input()
print("has", first.upper(), flush=True)
print("has", input().upper(), flush=True)
"""


def read_until(word: bytes, terminal: int) -> bytes:
    text = b""
    while word not in text:
        text += os.read(terminal, 1000)
    return text


def test_pressed_keys_have_their_effect_and_are_not_printed() -> None:
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(ROOT)
        os.execv(sys.executable, [sys.executable, "-c", READS])
    try:
        read_until(b"begins", terminal)
        os.write(terminal, b"silent\n")
        assert b"silent" not in read_until(b"SILENT", terminal)
        os.write(terminal, b"printed\n")
        assert b"printed" in read_until(b"PRINTED", terminal)
    finally:
        os.close(terminal)
        os.waitpid(pid, 0)


def test_the_terminal_of_others_stays_as_it_is() -> None:
    leader, follower = pty.openpty()  # not the terminal that this process is in the foreground of
    with os.fdopen(leader, "wb", buffering=0), os.fdopen(follower, "w") as terminal:
        before = termios.tcgetattr(terminal)
        with without_echo(terminal):
            assert termios.tcgetattr(terminal) == before


def test_a_file_is_no_terminal(tmp_path: Path) -> None:
    with without_echo(io.StringIO()), (tmp_path / "log").open("w") as log, without_echo(log):
        log.write("a line")
    assert (tmp_path / "log").read_text() == "a line"
