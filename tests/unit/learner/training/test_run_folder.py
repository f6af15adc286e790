"""A run notices if its folder is deleted."""

import shutil
from pathlib import Path

import pytest

from kubebeast_learner.training.run_folder import RunFolder, RunFolderError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (path := tmp_path / "logs" / "run").mkdir(parents=True)
    return path


def test_a_folder_that_is_there_is_well(folder: Path) -> None:
    watched = RunFolder(folder)
    (folder / "logs.csv").touch()
    watched.require()


@pytest.mark.parametrize("is_made_again", [False, True])
def test_a_folder_that_was_deleted_is_noticed_and_made_again(folder: Path, is_made_again: bool) -> None:
    watched = RunFolder(folder)
    folder.rename(folder.with_name("elsewhere"))
    if is_made_again:
        folder.mkdir()
    with pytest.raises(RunFolderError, match=f"{folder} was deleted under way"):
        watched.require()
    assert folder.is_dir()


def test_the_folder_of_all_runs_may_be_deleted_with_it(folder: Path) -> None:
    watched = RunFolder(folder)
    shutil.rmtree(folder.parent)
    with pytest.raises(RunFolderError):
        watched.require()
    assert folder.is_dir()


def test_another_volume_in_its_place_is_waited_for(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    watched = RunFolder(folder)
    monkeypatch.setattr(watched, "_device", -1)
    folder.rmdir()
    watched.require()
