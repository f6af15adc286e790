"""Stamps of passed groups."""

from pathlib import Path

import pytest

from checks.stamps import KEPT, MAX_AGE_S, Stamps

NOW = 1_000_000.0


@pytest.fixture
def stamps(tmp_path: Path) -> Stamps:
    return Stamps(tmp_path / "stamps", now=lambda: NOW)


def test_a_stamp_is_found_by_its_group_and_hash_alone(stamps: Stamps) -> None:
    stamps.write("core", "1f", commit="c0", seconds=3.0)
    found = stamps.find("core", "1f")

    assert found
    assert (found.commit, found.seconds) == ("c0", 3.0)
    assert stamps.find("core", "2f") is None
    assert stamps.find("chart", "1f") is None


@pytest.mark.parametrize("age_s", [MAX_AGE_S + 1.0, -1.0], ids=["too old", "from the future"])
def test_a_stamp_of_another_time_counts_for_nothing(age_s: float, stamps: Stamps, tmp_path: Path) -> None:
    stamps.write("core", "1f", commit="c0", seconds=3.0)

    assert Stamps(tmp_path / "stamps", now=lambda: NOW + age_s).find("core", "1f") is None


@pytest.mark.parametrize("text", ["", "{", "[]", '{"time": 1}'])
def test_a_damaged_stamp_counts_for_nothing(text: str, stamps: Stamps, tmp_path: Path) -> None:
    stamps.write("core", "1f", commit="c0", seconds=3.0)
    (tmp_path / "stamps" / "core" / "1f").write_text(text)

    assert stamps.find("core", "1f") is None
    assert stamps.newest("core") is None


def test_only_the_newest_are_kept(stamps: Stamps, tmp_path: Path) -> None:
    for number in range(KEPT + 5):
        stamps.write("core", f"{number:x}", commit="c0", seconds=float(number))

    assert len(list((tmp_path / "stamps" / "core").iterdir())) == KEPT


def test_a_folder_that_is_a_file_holds_no_stamp_and_takes_none(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    stamps = Stamps(tmp_path / "file")

    assert stamps.find("core", "1f") is None
    assert stamps.newest("core") is None
    with pytest.raises(OSError, match="file"):
        stamps.write("core", "1f", commit="c0", seconds=1.0)
