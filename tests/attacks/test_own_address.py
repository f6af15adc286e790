"""A host is no identity: a peer with the token is admitted even if it has the address of an attack."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kubebeast_conformance.learner.floods import BY_NAME
from kubebeast_conformance.wire import http2
from kubebeast_conformance.wire.http2 import RawConnection
from tests.attacks.siege import HONEST, Siege

MAX_OFFENCES = 3


@pytest.fixture(params=["plain", "tls"])
def strict(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Siege]:
    with Siege(tmp_path / "siege", f"--max-offences={MAX_OFFENCES}", tls=request.param == "tls") as siege:
        yield siege


def restart_an_env_server(siege: Siege) -> None:
    accepted = siege.count("kubebeast_streams_accepted_total")
    with siege.env_server():
        siege.wait_until(lambda: siege.count("kubebeast_streams_accepted_total") > accepted)
    siege.wait_until(lambda: siege.count("kubebeast_streams") == 1)


@pytest.mark.parametrize(
    "name", ["rapid reset of Act", "huge literal", "health checks", "pings", "Act without a token"]
)
def test_an_env_server_restarts_from_the_address_of_a_flood(strict: Siege, name: str) -> None:
    flood = BY_NAME[name]
    with strict.attacked(lambda: strict.is_cut_off(flood, HONEST)):
        strict.wait_until(lambda: strict.refused() > MAX_OFFENCES + 5)
        restart_an_env_server(strict)
        restart_an_env_server(strict)
    assert strict.learner.errors() == []


def test_an_env_server_restarts_beside_polite_connections_without_a_token(strict: Siege) -> None:
    """The connections send a client's preface and wait; each one that is closed is replaced by another."""

    def wait_in_vain() -> None:
        with RawConnection(strict.learner.address, strict.access, source=HONEST) as connection:
            connection.send(http2.OPENING)
            connection.wait_closed()

    with strict.attacked(wait_in_vain, num_threads=32):
        strict.wait_until(lambda: strict.refused() > 10 * MAX_OFFENCES)
        restart_an_env_server(strict)
    assert strict.learner.errors() == []
