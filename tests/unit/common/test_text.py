"""Characters that a terminal cannot show are replaced."""

import io
import sys

import pytest

from kubebeast_common.text import replace_what_cannot_be_shown


@pytest.mark.parametrize(
    ("encoding", "shown"), [("ascii", b"9 ? 1"), ("latin-1", b"9 \xb1 1"), ("utf-8", "9 ± 1".encode())]
)
def test_what_a_terminal_cannot_show_is_replaced(encoding: str, shown: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding))
    replace_what_cannot_be_shown()
    print("9 ± 1", end="", flush=True)
    assert written.getvalue() == shown
