"""Ids of dm_env name the missing package if shimmy is not installed.

tests/integration/library_environments.py has the tests that need it.
"""

import sys

import pytest

from kubebeast_envserver import make_vector_env


def test_an_id_of_dm_env_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "shimmy", None)

    with pytest.raises(ValueError, match=r"env = 'math:dm_env/Walk': .*pip install 'kubebeast\[dm-env\]'"):
        make_vector_env("math:dm_env/Walk", 1)
