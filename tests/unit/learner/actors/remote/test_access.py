"""Files that cannot secure the front door are refused by flag, and a door without a lock causes a warning."""

from pathlib import Path
from typing import Any

import pytest

from harness.certificates import issue, make_ca
from kubebeast_learner.actors.remote.access import check_files, warn_about_access
from kubebeast_learner.config import ConfigError, PoolConfig

SECRET = "correct-horse-battery-staple"


def write(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def test_files_that_fit_are_accepted(tmp_path: Path) -> None:
    ca = make_ca(tmp_path)
    pair = issue(ca, tmp_path, "learner")
    tokens = write(tmp_path / "tokens", f"\n{SECRET}\r\n\nanother-one\n".encode())
    check_files(PoolConfig(tls_cert=pair.cert, tls_key=pair.key, tls_ca=ca.pem, token_file=tokens))


@pytest.mark.parametrize("name", ["tls_cert", "tls_key", "tls_ca", "token_file"])
def test_a_missing_file_is_named_with_its_flag(name: str, tmp_path: Path) -> None:
    ca = make_ca(tmp_path)
    pair = issue(ca, tmp_path, "learner")
    tokens = write(tmp_path / "tokens", SECRET.encode())
    files: dict[str, Any] = {"tls_cert": pair.cert, "tls_key": pair.key, "tls_ca": ca.pem, "token_file": tokens}
    files[name] = tmp_path / "nowhere"
    with pytest.raises(ConfigError, match=rf"{name} = '[^']*nowhere'.*: No such file"):
        check_files(PoolConfig(**files))


def test_a_key_of_another_certificate_is_refused(tmp_path: Path) -> None:
    ca = make_ca(tmp_path)
    one, other = (issue(ca, tmp_path, name) for name in ("one", "other"))
    with pytest.raises(ConfigError, match=r"tls_cert = '.*one\.crt', tls_key = '.*other\.key': .*MISMATCH"):
        check_files(PoolConfig(tls_cert=one.cert, tls_key=other.key))


def test_authorities_that_are_none_are_refused(tmp_path: Path) -> None:
    ca = write(tmp_path / "ca.pem", b"-----BEGIN NOTHING-----\n")
    with pytest.raises(ConfigError, match=r"tls_ca = '.*ca\.pem': .*PEM"):
        check_files(PoolConfig(dial="host:1", tls_ca=ca))


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "holds no token"),
        (b"\n  \n", "holds no token"),
        (f"{SECRET}\n{SECRET}\xe9".encode(), "visible ASCII"),
        (f"{SECRET}\x00".encode(), "visible ASCII"),
    ],
)
def test_tokens_that_cannot_be_sent_are_refused_and_never_shown(content: bytes, reason: str, tmp_path: Path) -> None:
    tokens = write(tmp_path / "tokens", content)
    with pytest.raises(ConfigError, match=rf"token_file = '.*tokens': .*{reason}") as refusal:
        check_files(PoolConfig(token_file=tokens))
    assert SECRET not in str(refusal.value)


@pytest.mark.parametrize(
    ("address", "settings", "warned_of"),
    [
        ("127.0.0.1:4431", {}, []),
        ("[::1]:4431", {}, []),
        ("localhost:4431", {}, []),
        ("unix:/run/pool.sock", {}, []),
        ("", {"dial": "fleet:1"}, []),
        ("0.0.0.0:4431", {}, ["--tls-cert", "--token-file"]),
        ("learner.example:4431", {"token_file": Path("t")}, ["--tls-cert"]),
        ("[::]:4431", {"tls_cert": Path("c"), "tls_key": Path("k")}, ["--token-file"]),
        ("0.0.0.0:4431", {"tls_cert": Path("c"), "tls_key": Path("k"), "tls_ca": Path("a")}, []),
        ("0.0.0.0:4431", {"tls_cert": Path("c"), "tls_key": Path("k"), "token_file": Path("t")}, []),
        ("", {"dial": "127.0.0.1:1,localhost:2-3", "token_file": Path("t")}, []),
        ("", {"dial": "127.0.0.1:1,fleet:1", "token_file": Path("t")}, ["--tls-ca"]),
    ],
)
def test_every_lock_that_is_missing_is_warned_of_once(
    address: str, settings: dict[str, Any], warned_of: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    warn_about_access(PoolConfig(**settings), address)
    assert [flag in message for flag, message in zip(warned_of, caplog.messages, strict=True)] == [True] * len(
        warned_of
    )
