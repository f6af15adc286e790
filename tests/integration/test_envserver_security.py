"""TLS, mutual TLS and the bearer token work in both directions, with certificates made here."""

import contextlib
import logging
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest

from harness.certificates import (
    Authority,
    Pair,
    dialer_credentials,
    issue,
    listener_credentials,
)
from harness.ports import free_address
from kubebeast_envserver.config import EnvServerConfig
from kubebeast_envserver.stream.dial_advice import DIALS, DialAdvice
from kubebeast_envserver.stream.exit_code import ExitCode
from tests.integration.envserver_learner import (
    DialingLearner,
    FakeLearner,
    StreamThread,
    learner,
    next_log,
    watched_log,
)

pytestmark = pytest.mark.usefixtures("transport")

TOKEN, OTHER_TOKEN = "s3cret-of-the-test", "an0ther-secret"


@pytest.fixture(autouse=True)
def _tokens_stay_out_of_the_log(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    caplog.set_level(logging.DEBUG)
    yield
    assert TOKEN not in caplog.text
    assert OTHER_TOKEN not in caplog.text


@contextlib.contextmanager
def listening(**options: object) -> Iterator[str]:
    """Yields the address of an env-server that listens."""
    address = free_address()
    with watched_log() as log, StreamThread(env="Mock", envs_per_stream=1, listen=address, **options):
        next_log(log, "listening on")
        yield address


def plays(server: FakeLearner | DialingLearner) -> bool:
    return [server.next("observations").step for _ in range(2)] == [0, 1]


def reason_to_wait(server: FakeLearner, **options: object) -> str:
    """Returns the logged reason of an env-server that keeps dialing; asserts that the learner received nothing."""
    with (
        watched_log() as log,
        StreamThread(env="Mock", envs_per_stream=1, address=server.address, **options) as stream,
    ):
        reasons = [next_log(log, "waiting for the learner") for _ in range(2)]
        assert stream.exit_code is None
    assert server.received.empty()
    return reasons[-1]


def spoken(reason: str) -> str:
    """Returns BoringSSL's reason in the spelling of OpenSSL."""
    return reason.lower().replace("_", " ")


def advice_of(server: FakeLearner, **options: object) -> str:
    """Returns the warning of an env-server that keeps dialing."""
    with watched_log() as log, StreamThread(env="Mock", envs_per_stream=1, address=server.address, **options):
        return next_log(log, f"the learner at {server.address} does not let this env-server in")


def refusal_of(address: str, **options: object) -> tuple[grpc.StatusCode, str]:
    with DialingLearner(address, **options) as caller:  # type: ignore[arg-type]
        status = caller.status()
        assert caller.received.empty()
    return status


def test_a_dialer_that_trusts_the_authority_plays(ca: Authority, pair: Pair) -> None:
    with (
        learner(credentials=listener_credentials(pair)) as server,
        StreamThread(env="Mock", envs_per_stream=1, address=server.address, tls_ca=str(ca.pem)),
    ):
        assert plays(server)


def test_a_learner_of_another_authority_is_not_talked_to(stranger: Authority, pair: Pair) -> None:
    with learner(credentials=listener_credentials(pair)) as server:
        assert "certificate verify failed" in spoken(reason_to_wait(server, tls_ca=str(stranger.pem)))


def test_a_learner_under_another_name_is_not_talked_to(ca: Authority, tmp_path: Path) -> None:
    elsewhere = issue(ca, tmp_path, "elsewhere", host="learner.example")
    with learner(credentials=listener_credentials(elsewhere)) as server:
        assert "127.0.0.1" in reason_to_wait(server, tls_ca=str(ca.pem))
        with StreamThread(
            env="Mock",
            envs_per_stream=1,
            address=server.address,
            tls_ca=str(ca.pem),
            tls_server_name="learner.example",
        ):
            assert plays(server)


def test_a_learner_without_tls_is_not_talked_to(ca: Authority) -> None:
    with learner() as server:
        assert "UNAVAILABLE" in reason_to_wait(server, tls_ca=str(ca.pem))


def test_a_dialer_without_tls_is_not_heard(pair: Pair) -> None:
    with learner(credentials=listener_credentials(pair)) as server:
        assert "UNAVAILABLE" in reason_to_wait(server)


def test_a_learner_may_demand_a_certificate_of_the_dialer(
    ca: Authority, stranger: Authority, pair: Pair, tmp_path: Path
) -> None:
    own, foreign = issue(ca, tmp_path, "dialer"), issue(stranger, tmp_path, "foreign")
    with learner(credentials=listener_credentials(pair, client_ca=ca)) as server:
        assert "UNAVAILABLE" in reason_to_wait(server, tls_ca=str(ca.pem))
        assert "UNAVAILABLE" in reason_to_wait(
            server, tls_ca=str(ca.pem), tls_cert=str(foreign.cert), tls_key=str(foreign.key)
        )
        with StreamThread(
            env="Mock",
            envs_per_stream=1,
            address=server.address,
            tls_ca=str(ca.pem),
            tls_cert=str(own.cert),
            tls_key=str(own.key),
        ):
            assert plays(server)


def test_a_dialer_that_is_kept_out_says_what_is_probably_wrong(
    ca: Authority, stranger: Authority, pair: Pair, tmp_path: Path
) -> None:
    foreign = issue(stranger, tmp_path, "foreign")
    elsewhere = issue(ca, tmp_path, "elsewhere", host="learner.example")
    shows_foreign = {"tls_cert": str(foreign.cert), "tls_key": str(foreign.key)}
    with learner(credentials=listener_credentials(pair, client_ca=ca)) as server:
        assert "probably demands TLS" in advice_of(server)
        assert "probably demands a certificate" in advice_of(server, tls_ca=str(ca.pem))
        assert f"authority of tls_cert = '{foreign.cert}'" in advice_of(server, tls_ca=str(ca.pem), **shows_foreign)
        assert f"no authority in tls_ca = '{stranger.pem}'" in advice_of(server, tls_ca=str(stranger.pem))
    with learner() as server:
        assert "seems to have no TLS" in advice_of(server, tls_ca=str(ca.pem))
    with learner(credentials=listener_credentials(elsewhere)) as server:
        assert "tls_server_name" in advice_of(server, tls_ca=str(ca.pem))


def test_a_dialer_that_finds_nobody_gives_no_advice_and_one_that_was_in_gives_it_again() -> None:
    advice = DialAdvice(EnvServerConfig(env="Mock"))
    refused, closed = "UNAVAILABLE: Connection refused", "UNAVAILABLE: Socket closed"
    assert [advice.note_failure(refused) for _ in range(DIALS)] == [""] * DIALS
    for _ in range(2):
        told = [advice.note_failure(closed) for _ in range(2 * DIALS)]
        assert [i for i, text in enumerate(told, 1) if text] == [DIALS]
        advice.note_success()


def test_a_dialer_reads_replaced_files_at_its_next_dial(ca: Authority, stranger: Authority, pair: Pair) -> None:
    right = ca.pem.read_bytes()
    trusted = stranger.pem
    with (
        watched_log() as log,
        learner(credentials=listener_credentials(pair)) as server,
        StreamThread(env="Mock", envs_per_stream=1, address=server.address, tls_ca=str(trusted)),
    ):
        assert "certificate verify failed" in spoken(next_log(log, "waiting for the learner"))
        trusted.write_text("half a fi")
        next_log(log, f"TlsError: tls_ca = '{trusted}'")
        trusted.write_bytes(right)
        assert plays(server)


def test_a_listener_shows_its_certificate(ca: Authority, stranger: Authority, pair: Pair) -> None:
    with listening(tls_cert=str(pair.cert), tls_key=str(pair.key)) as address:
        code, details = refusal_of(address, credentials=dialer_credentials(stranger))
        assert code == grpc.StatusCode.UNAVAILABLE
        assert "CERTIFICATE_VERIFY_FAILED" in details
        with DialingLearner(address, credentials=dialer_credentials(ca)) as caller:
            assert plays(caller)


def test_a_listener_with_tls_does_not_hear_a_learner_without(pair: Pair) -> None:
    with (
        listening(tls_cert=str(pair.cert), tls_key=str(pair.key)) as address,
        grpc.insecure_channel(address) as channel,
        pytest.raises(grpc.RpcError) as error,
    ):
        channel.unary_unary("/grpc.health.v1.Health/Check", None, None)(b"")
    assert error.value.code() == grpc.StatusCode.UNAVAILABLE


def test_a_listener_may_demand_a_certificate_of_the_learner(
    ca: Authority, stranger: Authority, pair: Pair, tmp_path: Path
) -> None:
    own, foreign = issue(ca, tmp_path, "dialer"), issue(stranger, tmp_path, "foreign")
    with listening(tls_cert=str(pair.cert), tls_key=str(pair.key), tls_ca=str(ca.pem)) as address:
        for credentials in (dialer_credentials(ca), dialer_credentials(ca, foreign)):
            assert refusal_of(address, credentials=credentials)[0] == grpc.StatusCode.UNAVAILABLE
        with DialingLearner(address, credentials=dialer_credentials(ca, own)) as caller:
            assert plays(caller)


def test_a_listener_reads_replaced_files_at_the_next_handshake(
    ca: Authority, stranger: Authority, pair: Pair, tmp_path: Path
) -> None:
    new = issue(stranger, tmp_path, "new")
    with watched_log() as log, listening(tls_cert=str(pair.cert), tls_key=str(pair.key)) as address:
        with DialingLearner(address, credentials=dialer_credentials(ca)) as before:
            assert plays(before)
            pair.cert.write_bytes(new.cert.read_bytes())
            assert refusal_of(address, credentials=dialer_credentials(ca))[0] == grpc.StatusCode.RESOURCE_EXHAUSTED
            next_log(log, "the former certificate stays in use")
            pair.replace_by(new)
            assert refusal_of(address, credentials=dialer_credentials(ca))[0] == grpc.StatusCode.UNAVAILABLE
            last = before.next("observations").step
            assert before.next("observations").step == last + 1
        next_log(log, "lost the learner")
        with DialingLearner(address, credentials=dialer_credentials(stranger)) as after:
            assert plays(after)


def test_a_listener_with_unusable_files_says_which(pair: Pair, tmp_path: Path, ca: Authority) -> None:
    other = issue(ca, tmp_path, "other")
    with (
        watched_log() as log,
        StreamThread(env="Mock", listen=free_address(), tls_cert=str(pair.cert), tls_key=str(other.key)) as stream,
    ):
        assert "key values mismatch" in next_log(log, f"tls_cert = '{pair.cert}'")
        assert stream.join() == ExitCode.USAGE


def test_a_dialer_sends_the_first_token_of_its_file(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text(f"\n  {TOKEN}\n{OTHER_TOKEN}\n")
    with (
        learner(token=TOKEN) as server,
        StreamThread(env="Mock", envs_per_stream=1, address=server.address, token_file=str(tokens)),
    ):
        assert plays(server)


@pytest.mark.parametrize("text", [OTHER_TOKEN, None])
def test_a_wrong_or_missing_token_is_a_refusal_for_good(tmp_path: Path, text: str | None) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text(text or "unused")
    options = {"token_file": str(tokens)} if text is not None else {}
    with (
        watched_log() as log,
        learner(token=TOKEN) as server,
        StreamThread(env="Mock", envs_per_stream=1, address=server.address, **options) as stream,
    ):
        assert "UNAUTHENTICATED: the bearer token is wrong" in next_log(log, "refuses")
        assert stream.join() == ExitCode.REFUSED


def test_a_dialer_reads_a_replaced_token_at_its_next_dial(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text(TOKEN)
    with (
        watched_log() as log,
        learner(token=TOKEN) as first,
        StreamThread(env="Mock", envs_per_stream=1, address=first.address, token_file=str(tokens)),
    ):
        assert plays(first)
        tokens.write_text("")
        first.stop()
        next_log(log, f"TokenFileError: token_file = '{tokens}': holds no token")
        tokens.write_text(f"{OTHER_TOKEN}\n{TOKEN}")
        with learner(port=first.port, token=OTHER_TOKEN) as second:
            assert plays(second)


def test_a_listener_demands_one_of_its_tokens(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text(f"{OTHER_TOKEN}\n{TOKEN}\n")
    unauthenticated = grpc.StatusCode.UNAUTHENTICATED
    with listening(token_file=str(tokens)) as address:
        assert refusal_of(address) == (unauthenticated, "the bearer token is missing")
        assert refusal_of(address, token="guess") == (unauthenticated, "the bearer token is wrong")
        assert refusal_of(address, token=TOKEN[:-1]) == (unauthenticated, "the bearer token is wrong")
        with DialingLearner(address, token=TOKEN) as caller:
            assert plays(caller)
        tokens.write_text(OTHER_TOKEN)
        assert refusal_of(address, token=TOKEN) == (unauthenticated, "the bearer token is wrong")
        tokens.unlink()
        assert refusal_of(address, token=OTHER_TOKEN)[0] == grpc.StatusCode.UNAVAILABLE


def test_a_token_that_would_travel_in_the_clear_is_warned_of(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text(TOKEN)
    with watched_log() as log, StreamThread(env="Mock", address="learner.invalid:1", token_file=str(tokens)):
        assert "learner.invalid:1 in the clear" in next_log(log, "token_file without tls_ca")
