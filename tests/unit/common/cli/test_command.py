"""Commands are those of the installed packages; one of a package that is missing names the package."""

import pytest

from kubebeast_common.cli import command
from kubebeast_common.cli import main as cli
from kubebeast_common.cli.command import PROVIDERS, find_commands


def test_the_table_of_providers_has_every_command() -> None:
    known = {name for names in PROVIDERS.values() for name in names}
    assert {name.partition(" ")[0] for name in find_commands()} == known | {"completion"}


@pytest.mark.parametrize(("name", "package"), [("train", "kubebeast-learner"), ("top", "kubebeast-observe")])
def test_a_command_of_a_missing_package_names_it(
    name: str, package: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "entry_points", lambda **selection: ())
    find_commands.cache_clear()
    try:
        assert cli.main([name]) == 2
    finally:
        find_commands.cache_clear()
    assert capsys.readouterr().err.startswith(f"kubebeast: the package {package}, which has {name}, is missing")
