"""The native pool admits the right peers by bearer token, in both directions, and never reveals a token."""

import contextlib
import logging
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest

import kubebeast_native as native
from harness.certificates import dialer_credentials, issue, make_ca, tls_options
from harness.ports import free_address
from kubebeast_envserver.stream.exit_code import ExitCode
from tests.integration.envserver_learner import TIMEOUT_S, next_log, running, wait_for_log, watched_log
from tests.integration.playing_pool import PlayingPool, listening, undisturbed

TOKEN, OTHER_TOKEN = "s3cret-of-the-test", "an0ther-secret"
SERVING, NOT_SERVING = b"\x08\x01", b"\x08\x02"
"""HealthCheckResponse (https://github.com/grpc/grpc/blob/master/doc/health-checking.md)."""


@pytest.fixture
def tokens(tmp_path: Path) -> Path:
    """The pool's file of tokens."""
    return written(tmp_path / "tokens", TOKEN)


@pytest.fixture(autouse=True)
def _tokens_stay_out_of_logs(caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]) -> Iterator[None]:
    caplog.set_level(logging.DEBUG)
    yield
    assert_tells_no_token(caplog.text, *capfd.readouterr())


def assert_tells_no_token(*texts: str) -> None:
    for text in texts:
        assert TOKEN not in text
        assert OTHER_TOKEN not in text


def written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


@contextlib.contextmanager
def playing(**options: object) -> Iterator[PlayingPool]:
    """Yields a pool, and asserts that it has revealed no token."""
    pool = PlayingPool(**options)  # type: ignore[arg-type]
    with pool:
        yield pool
        pool.events += pool.native.take_stream_events()
        names = ("env_server_id", "instance_id", "env_id", "peer", "reason", "detail")
        told = [str(getattr(event, name)) for event in pool.events for name in names]
    with pytest.raises(native.ClosedError) as closed:
        pool.native.next_inference(timeout_ms=0)
    assert_tells_no_token(*told, str(pool.native.stats()), str(closed.value))


@pytest.mark.parametrize("text", [None, OTHER_TOKEN, TOKEN[:-1], TOKEN + "x"], ids=["none", "other", "part", "more"])
def test_an_env_server_without_the_token_is_refused_for_good(tokens: Path, tmp_path: Path, text: str | None) -> None:
    options = {"token_file": str(written(tmp_path / "theirs", text))} if text is not None else {}
    with playing(token_file=str(tokens)) as pool, pool.env_server(**options) as stream:
        assert pool.verdict_on(stream) == ExitCode.REFUSED
        refusal = pool.wait_for_event("refused")
        assert refusal.reason == "UNAUTHENTICATED"
        assert refusal.detail == f"the bearer token is {'missing' if text is None else 'wrong'}"
        assert refusal.peer.startswith("ipv4:127.0.0.1:")
        assert (pool.stat("streams_unauthenticated"), pool.stat("streams_accepted")) == (1, 0)


def test_a_process_without_the_token_says_so_and_exits(tokens: Path, tmp_path: Path) -> None:
    theirs = written(tmp_path / "theirs", OTHER_TOKEN)
    with (
        playing(token_file=str(tokens)) as pool,
        running("--env", "Mock", "--address", pool.address, "--token-file", str(theirs)) as process,
    ):
        assert_tells_no_token(wait_for_log(process, "UNAUTHENTICATED: the bearer token is wrong"))
        assert process.wait(TIMEOUT_S) == ExitCode.REFUSED
        assert process.stderr is not None
        assert_tells_no_token(process.stderr.read())


def test_newcomers_are_judged_by_replaced_tokens_and_nobody_is_disturbed(tokens: Path, tmp_path: Path) -> None:
    old, new = ({"token_file": str(written(tmp_path / text, text))} for text in (TOKEN, OTHER_TOKEN))
    with playing(token_file=str(tokens)) as pool, pool.env_server(**old) as early:
        pool.play_with(early)
        tokens.write_text(f"\n  {OTHER_TOKEN}\r\n{TOKEN}\n")
        for options in (new, old):
            with pool.env_server(**options) as late:
                pool.play_with(late)
        tokens.write_text(OTHER_TOKEN)
        with pool.env_server(**old) as refused:
            assert pool.verdict_on(refused) == ExitCode.REFUSED
        pool.play_with(early)
        assert undisturbed(early)


@pytest.mark.parametrize("is_directory", [False, True], ids=["missing", "directory"])
def test_env_servers_wait_while_the_pool_cannot_read_its_tokens(
    tokens: Path, tmp_path: Path, is_directory: bool
) -> None:
    theirs = written(tmp_path / "theirs", TOKEN)
    with playing(token_file=str(tokens)) as pool:
        tokens.unlink()
        if is_directory:
            tokens.mkdir()
        with watched_log() as log, pool.env_server(token_file=str(theirs)) as stream:
            next_log(log, "UNAVAILABLE: the learner cannot check tokens")
            if is_directory:
                tokens.rmdir()
            tokens.write_text(TOKEN)
            pool.play_with(stream)


def test_health_checks_need_no_token_and_end_with_the_drain(tokens: Path, tmp_path: Path) -> None:
    ca = make_ca(tmp_path)
    name = b"kubebeast.v1.ActorPool"
    with (
        playing(**tls_options(issue(ca, tmp_path, "pool")), token_file=str(tokens)) as pool,
        grpc.secure_channel(pool.address, dialer_credentials(ca)) as channel,
    ):
        check = channel.unary_unary("/grpc.health.v1.Health/Check", None, None)
        requests = (b"", b"\x0a" + bytes([len(name)]) + name)
        assert [check(request, timeout=TIMEOUT_S) for request in requests] == [SERVING] * 2
        pool.native.drain()
        assert [check(request, timeout=TIMEOUT_S) for request in requests] == [NOT_SERVING] * 2


@pytest.mark.parametrize("text", [None, OTHER_TOKEN], ids=["none", "other"])
def test_a_pool_without_the_token_is_told_so(tokens: Path, tmp_path: Path, text: str | None) -> None:
    address = free_address()
    options = {"token_file": str(written(tmp_path / "ours", text))} if text is not None else {}
    with listening(listen=address, token_file=str(tokens)), playing(address="", **options) as pool:
        pool.native.dial([(address, "")])
        failure = pool.wait_for_event("dial_failed")
        assert failure.reason == "UNAUTHENTICATED"
        assert failure.detail == f"the bearer token is {'missing' if text is None else 'wrong'}"
        assert failure.peer == address
        assert (pool.stat("dials_failed"), pool.stat("streams_accepted")) == (1, 0)


def test_later_dials_send_the_replaced_token_and_nobody_is_disturbed(tokens: Path, tmp_path: Path) -> None:
    first, second = free_address(), free_address()
    theirs = written(tmp_path / "theirs", OTHER_TOKEN)
    with (
        listening(listen=first, token_file=str(tokens)) as early,
        listening(listen=second, token_file=str(theirs)) as late,
        playing(address="", token_file=str(tokens)) as pool,
    ):
        pool.native.dial([(first, ""), (second, "")])
        pool.play_with(early)
        assert pool.wait_for_event("dial_failed").peer == second
        tokens.write_text(f"{OTHER_TOKEN}\n{TOKEN}\n")
        pool.play_with(late)
        pool.play_with(early)
        assert undisturbed(early)


@pytest.mark.parametrize(
    "content",
    [b"", b"\n \r\n", b"\xef\xbb\xbf" + TOKEN.encode(), TOKEN.encode() + b"\x01"],
    ids=["empty", "blank", "byte-order-mark", "control"],
)
def test_a_pool_without_a_token_to_send_says_so_and_dials_again(tokens: Path, tmp_path: Path, content: bytes) -> None:
    address, ours = free_address(), tmp_path / "ours"
    ours.write_bytes(content)
    with (
        listening(listen=address, token_file=str(tokens)) as stream,
        playing(address="", token_file=str(ours)) as pool,
    ):
        pool.native.dial([(address, "")])
        failure = pool.wait_for_event("dial_failed")
        assert failure.reason == "UNAVAILABLE"
        assert str(ours) in failure.detail
        ours.write_text(TOKEN)
        pool.play_with(stream)
