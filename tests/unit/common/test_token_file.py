"""Only calls with a bearer token of the file are accepted; without a file all calls are."""

from pathlib import Path

import pytest

from kubebeast_common.access.token_file import MISSING, WRONG, TokenFileError, authorization, refusal


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "tokens"
    path.write_text("first-token\r\n\n second/token==\n")
    return path


def test_the_first_token_is_sent(path: Path) -> None:
    assert authorization(str(path)) == (("authorization", "Bearer first-token"),)
    assert authorization("") == ()


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        ("Bearer first-token", None),
        ("bearer second/token==", None),
        (b"Bearer first-token", None),
        (None, MISSING),
        ("", MISSING),
        ("Bearer", MISSING),
        ("Bearer ", MISSING),
        ("Basic first-token", MISSING),
        ("first-token", MISSING),
        ("Bearer first-toke", WRONG),
        ("Bearer first-token\nsecond/token==", WRONG),
        ("Bearer  first-token", WRONG),
        (b"Bearer \xff\x00", WRONG),
        ("Bearer tökén", WRONG),
    ],
)
def test_any_token_of_the_file_is_accepted_and_nothing_else(
    path: Path, header: str | bytes | None, reason: str | None
) -> None:
    metadata: list[tuple[str, str | bytes]] = [("user-agent", "test")]
    if header is not None:
        metadata.append(("authorization", header))
    assert refusal(str(path), metadata) == reason


def test_without_a_file_every_call_is_accepted() -> None:
    assert refusal("", []) is None


@pytest.mark.parametrize(("text", "reason"), [(" \n\n", "holds no token"), ("two words\n", "visible ASCII")])
def test_an_unusable_file_is_named_without_its_text(path: Path, text: str, reason: str) -> None:
    path.write_text(text)
    for use in (lambda: authorization(str(path)), lambda: refusal(str(path), [])):
        with pytest.raises(TokenFileError, match=reason) as error:
            use()
        assert str(path) in str(error.value)
        assert "words" not in str(error.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(TokenFileError, match="No such file"):
        authorization(str(tmp_path / "nowhere"))
