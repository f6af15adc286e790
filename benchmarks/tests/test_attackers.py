"""The attackers of the benchmark reconnect as soon as a learner has ended their connections."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import kubebeast_native as native
from benchmarks import attackers
from harness.certificates import Authority, issue, make_ca


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return make_ca(tmp_path_factory.mktemp("authority"))


@pytest.fixture(params=["plain", "tls"])
def pool(request: pytest.FixtureRequest, tmp_path: Path, authority: Authority) -> Iterator[native.ActorPool]:
    token = tmp_path / "token"
    token.write_text("open-sesame\n")
    pair = issue(authority, tmp_path, "learner") if request.param == "tls" else None
    pool = native.ActorPool(
        address="127.0.0.1:0",
        run_id="attacks",
        unroll_length=1,
        batch_size=1,
        handshake_timeout_ms=100,
        max_offences=0,
        token_file=str(token),
        tls_cert=str(pair.cert) if pair else "",
        tls_key=str(pair.key) if pair else "",
    )
    pool.start()
    yield pool
    pool.close()


def num_refused(pool: native.ActorPool) -> int:
    return sum(count for name, count in pool.stats().items() if name.startswith("connections_"))


@pytest.mark.parametrize("name", ["pings", "rapid reset of Act", attackers.SILENT])
def test_attackers_are_cut_off_and_come_again(
    request: pytest.FixtureRequest, pool: native.ActorPool, authority: Authority, name: str
) -> None:
    ca = str(authority.pem) if "tls" in request.node.callspec.id else ""
    core = min(os.sched_getaffinity(0))

    with attackers.attacking(name, pool.address, "127.0.0.2", 2, ca, core) as num_ended:
        while num_ended() < 5 or num_refused(pool) < 3:
            pass
