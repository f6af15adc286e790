"""The native pool admits the right peers by TLS and mutual TLS, in both directions, with real env-servers."""

import shutil
import socket
import ssl
from pathlib import Path

import grpc

import kubebeast_native as native
from harness.certificates import Authority, Pair, dialer_credentials, issue, tls_options
from harness.ports import free_address
from tests.integration.envserver_learner import TIMEOUT_S, next_log, watched_log
from tests.integration.playing_pool import PlayingPool, listening, undisturbed


def copy_of(path: Path) -> Path:
    """Copies the file to one beside it that a test may replace."""
    return Path(shutil.copy(path, path.with_suffix(".copy")))


def assert_never_accepted(pool: PlayingPool, **options: object) -> None:
    """Asserts that an env-server with these options dials in vain, and keeps dialing."""
    accepted = pool.stat("streams_accepted")
    with watched_log() as log, pool.env_server(**options) as stream:
        for _ in range(2):
            assert "UNAVAILABLE" in next_log(log, "waiting for the learner")
        assert stream.exit_code is None
    assert pool.stat("streams_accepted") == accepted


def assert_dialed_in_vain(address: str, server_name: str = "", **options: object) -> native.StreamEvent:
    """Asserts that a pool with these options dials twice without getting a stream; returns the event that reports
    it.
    """
    with PlayingPool(address="", **options) as pool:
        pool.native.dial([(address, server_name)])
        pool.play_until(lambda: pool.stat("dials_failed") >= 2)
        assert pool.stat("streams_accepted") == 0
        event = pool.wait_for_event("dial_failed")
        assert event.peer == address
        return event


def shakes_hands(address: str, ca: Authority) -> bool:
    """Returns True if a peer with a certificate of the authority answers, by TLS 1.3."""
    context = ssl.create_default_context(cafile=ca.pem)
    context.set_alpn_protocols(["h2"])
    host, _, port = address.rpartition(":")
    try:
        with (
            socket.create_connection((host, int(port)), TIMEOUT_S) as connection,
            context.wrap_socket(connection, server_hostname=host) as encrypted,
        ):
            return encrypted.version() == "TLSv1.3"
    except (ssl.SSLError, ConnectionError):
        return False


def test_an_env_server_that_trusts_the_authority_plays_by_tls_1_3(ca: Authority, pair: Pair) -> None:
    with PlayingPool(**tls_options(pair)) as pool, pool.env_server(**tls_options(trusts=ca)) as stream:
        assert shakes_hands(pool.address, ca)
        pool.play_with(stream)


def test_an_env_server_that_does_not_know_the_pool_never_talks_to_it(
    ca: Authority, stranger: Authority, tmp_path: Path
) -> None:
    elsewhere = issue(ca, tmp_path, "elsewhere", host="learner.example")
    with PlayingPool(**tls_options(elsewhere)) as pool:
        assert_never_accepted(pool)
        assert_never_accepted(pool, **tls_options(trusts=stranger), tls_server_name="learner.example")
        assert_never_accepted(pool, **tls_options(trusts=ca))
        with pool.env_server(**tls_options(trusts=ca), tls_server_name="learner.example") as stream:
            pool.play_with(stream)


def test_an_env_server_with_tls_never_talks_to_a_pool_without(ca: Authority) -> None:
    with PlayingPool() as pool:
        assert_never_accepted(pool, **tls_options(trusts=ca))


def test_mutual_tls_admits_certificates_of_the_authority_only(
    ca: Authority, stranger: Authority, pair: Pair, tmp_path: Path
) -> None:
    own, foreign = issue(ca, tmp_path, "own"), issue(stranger, tmp_path, "foreign")
    with PlayingPool(**tls_options(pair, trusts=ca)) as pool:
        assert_never_accepted(pool, **tls_options(trusts=ca))
        assert_never_accepted(pool, **tls_options(foreign, trusts=ca))
        with pool.env_server(**tls_options(own, trusts=ca)) as stream:
            pool.play_with(stream)


def test_a_refused_certificate_is_told_with_the_peer_and_counted(
    ca: Authority, stranger: Authority, pair: Pair, tmp_path: Path
) -> None:
    foreign = issue(stranger, tmp_path, "foreign")
    for options in (tls_options(trusts=ca), tls_options(foreign, trusts=ca)):
        with PlayingPool(**tls_options(pair, trusts=ca), handshake_timeout_ms=500) as pool:
            assert_never_accepted(pool, **options)
            refusal = pool.wait_for_event("connection_refused")
            assert refusal.peer.startswith("ipv4:127.0.0.1:")
            assert refusal.reason == "no_call"
            assert "certificate may be missing or not accepted" in refusal.detail
            assert pool.stat("connections_no_call") >= 1


def test_a_dialer_without_tls_is_told_with_the_peer_and_counted(pair: Pair) -> None:
    with PlayingPool(**tls_options(pair)) as pool:
        assert_never_accepted(pool)
        refusal = pool.wait_for_event("connection_refused")
        assert (refusal.reason, refusal.detail) == ("plaintext", "it came without TLS, which the learner demands")
        assert pool.stat("connections_plaintext") >= 2


def test_a_dialer_with_tls_is_told_by_a_pool_without(ca: Authority) -> None:
    with PlayingPool() as pool:
        assert_never_accepted(pool, **tls_options(trusts=ca))
        assert pool.wait_for_event("connection_refused").reason == "tls"


def test_health_checks_and_probes_of_the_port_are_no_refused_connections(ca: Authority, pair: Pair) -> None:
    with PlayingPool(**tls_options(pair), handshake_timeout_ms=200) as pool:
        for _ in range(3):
            with grpc.secure_channel(pool.address, dialer_credentials(ca)) as channel:
                channel.unary_unary("/grpc.health.v1.Health/Check", None, None)(b"", timeout=TIMEOUT_S)
        host, _, port = pool.address.rpartition(":")
        socket.create_connection((host, int(port))).close()
        pool.play_until(lambda: pool.stat("connections_closed") == 1)
        # Connections are reported in order: once this refused one is, no earlier one can follow.
        with socket.create_connection((host, int(port))) as garbled:
            garbled.sendall(b"\x16")
            assert pool.wait_for_event("connection_refused").peer.endswith(f":{garbled.getsockname()[1]}")
        assert len(pool.events) == 1


def test_newcomers_see_a_replaced_certificate_and_nobody_is_disturbed(
    ca: Authority, stranger: Authority, pair: Pair, tmp_path: Path
) -> None:
    with PlayingPool(**tls_options(pair)) as pool, pool.env_server(**tls_options(trusts=ca)) as early:
        pool.play_with(early)
        with watched_log() as log, pool.env_server(**tls_options(trusts=stranger)) as late:
            next_log(log, "waiting for the learner")
            pair.replace_by(issue(stranger, tmp_path, "new"))
            pool.play_with(late)
            pool.play_with(early)
        assert_never_accepted(pool, **tls_options(trusts=ca))
        assert undisturbed(early)


def test_half_a_replacement_is_mended_by_the_other_half(
    ca: Authority, stranger: Authority, pair: Pair, tmp_path: Path
) -> None:
    new = issue(stranger, tmp_path, "new")
    with PlayingPool(**tls_options(pair)) as pool, pool.env_server(**tls_options(trusts=ca)) as early:
        pair.cert.write_bytes(new.cert.read_bytes())
        pool.play_until(lambda: not shakes_hands(pool.address, ca))
        pair.key.write_bytes(new.key.read_bytes())
        pool.play_until(lambda: shakes_hands(pool.address, stranger))
        pool.play_with(early)
        assert undisturbed(early)


def test_newcomers_are_judged_by_replaced_authorities_and_nobody_is_disturbed(
    ca: Authority, stranger: Authority, pair: Pair, tmp_path: Path
) -> None:
    own, foreign = (tls_options(issue(by, tmp_path, f"env-of-{by.pem.stem}"), trusts=ca) for by in (ca, stranger))
    trusted = copy_of(ca.pem)
    with PlayingPool(**tls_options(pair), tls_ca=str(trusted)) as pool, pool.env_server(**own) as early:
        pool.play_with(early)
        with watched_log() as log, pool.env_server(**foreign) as late:
            next_log(log, "waiting for the learner")
            trusted.write_bytes(stranger.pem.read_bytes())
            pool.play_with(late)
            pool.play_with(early)
        assert_never_accepted(pool, **own)
        assert undisturbed(early)


def test_a_pool_that_trusts_the_authority_dials(ca: Authority, pair: Pair) -> None:
    address = free_address()
    with (
        PlayingPool(address="", **tls_options(trusts=ca)) as pool,
        listening(listen=address, **tls_options(pair)) as stream,
    ):
        pool.native.dial([(address, "")])
        pool.play_with(stream)


def test_a_pool_with_tls_does_not_talk_to_env_servers_without(ca: Authority) -> None:
    address = free_address()
    with listening(listen=address):
        assert assert_dialed_in_vain(address, **tls_options(trusts=ca)).reason == "UNAVAILABLE"


def test_a_pool_that_does_not_trust_the_authority_does_not_talk_to_env_servers(stranger: Authority, pair: Pair) -> None:
    address = free_address()
    with listening(listen=address, **tls_options(pair)):
        for options in (tls_options(), tls_options(trusts=stranger)):
            assert assert_dialed_in_vain(address, **options).reason == "UNAVAILABLE"


def test_an_env_server_is_dialed_under_the_name_in_its_certificate(ca: Authority, tmp_path: Path) -> None:
    address, named = free_address(), issue(ca, tmp_path, "named", host="pod.example")
    with listening(listen=address, **tls_options(named)) as stream:
        for wrong_name in ("", "example"):
            assert assert_dialed_in_vain(address, wrong_name, **tls_options(trusts=ca)).reason == "UNAVAILABLE"
        with PlayingPool(address="", **tls_options(trusts=ca)) as pool:
            pool.native.dial([(address, "pod.example")])
            pool.play_with(stream)


def test_an_env_server_may_demand_a_certificate_of_the_pool(
    ca: Authority, stranger: Authority, pair: Pair, tmp_path: Path
) -> None:
    address, own, foreign = free_address(), issue(ca, tmp_path, "own"), issue(stranger, tmp_path, "foreign")
    with listening(listen=address, **tls_options(pair, trusts=ca)) as stream:
        for shown in (None, foreign):
            assert assert_dialed_in_vain(address, **tls_options(shown, trusts=ca)).reason == "UNAVAILABLE"
        with PlayingPool(address="", **tls_options(own, trusts=ca)) as pool:
            pool.native.dial([(address, "")])
            pool.play_with(stream)


def test_later_dials_read_replaced_files_and_nobody_is_disturbed(
    ca: Authority, stranger: Authority, pair: Pair, tmp_path: Path
) -> None:
    first, second = free_address(), free_address()
    foreign = issue(stranger, tmp_path, "foreign")
    trusted = copy_of(ca.pem)
    with (
        PlayingPool(address="", tls_ca=str(trusted)) as pool,
        listening(listen=first, **tls_options(pair)) as early,
        listening(listen=second, **tls_options(foreign)) as late,
    ):
        pool.native.dial([(first, ""), (second, "")])
        pool.play_with(early)
        assert pool.wait_for_event("dial_failed").peer == second
        trusted.write_bytes(stranger.pem.read_bytes())
        pool.play_with(late)
        pool.play_with(early)
        assert undisturbed(early)
