"""Modules of users are found in the working directory, after Python's and installed ones."""

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kubebeast_common.user_code import (
    UserImportError,
    import_user_module,
    import_user_object,
    shadow_hint,
)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Changes to a new working directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


def test_a_module_of_the_working_directory_is_imported(folder: Path) -> None:
    (folder / "beside_me.py").write_text("name = 'mine'")
    assert import_user_object("beside_me:name") == "mine"
    assert sys.path[-1] == str(folder)


@pytest.mark.parametrize("name", ["colorsys", "yaml"])
def test_a_file_with_the_name_of_another_module_takes_no_ones_place(folder: Path, name: str) -> None:
    (folder / f"{name}.py").write_text("raise SystemExit")
    (folder / "beside_me.py").write_text("")
    import_user_module("beside_me")
    sys.modules.pop(name, None)
    origin = importlib.import_module(name).__file__
    assert origin is not None and not origin.startswith(str(folder))


@pytest.mark.parametrize("name", ["code", "platform", "json", "numpy", "sys"])
def test_an_object_that_a_module_of_the_same_name_hides_is_told_of(folder: Path, name: str) -> None:
    (folder / f"{name}.py").write_text("Env = 1")
    with pytest.raises(
        UserImportError, match=rf"has no Env; the module {name} is .*, not {folder}/{name}\.py: give yours"
    ):
        import_user_object(f"{name}:Env")


def test_a_package_that_a_module_of_the_same_name_hides_is_told_of(folder: Path) -> None:
    (folder / "code").mkdir()
    (folder / "code" / "envs.py").write_text("Env = 1")
    with pytest.raises(UserImportError, match=rf"the module code is .*, not {folder}/code: give yours another name"):
        import_user_object("code.envs:Env")


def test_a_module_that_nothing_hides_has_no_hint(folder: Path) -> None:
    (folder / "beside_me.py").write_text("")
    (folder / "beside_me_too").mkdir()
    (folder / "beside_me_too" / "__init__.py").write_text("")
    for name in ("beside_me", "beside_me_too"):
        import_user_module(name)
        assert shadow_hint(name) == ""
    assert shadow_hint("platform") == shadow_hint("") == ""


def test_a_working_directory_that_was_deleted_is_passed_over(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "deleted").mkdir()
    monkeypatch.chdir(folder / "deleted")
    (folder / "deleted").rmdir()
    assert import_user_module("colorsys").__name__ == "colorsys"
