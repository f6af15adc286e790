"""A broker serves the right peers only, and survives the others."""

import contextlib
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import grpc
import pytest

from harness.certificates import issue, make_ca
from harness.processes.broker_process import BrokerProcess
from kubebeast_common.access.kept_call import KeptCall, Service
from kubebeast_common.access.tls_files import TlsFiles
from kubebeast_protos.v1 import broker_pb2 as pb

METHODS = ("Register", "Assign")
TIMEOUT_S = 60.0
TOKEN = "s3cret-of-the-test"
LEARNER = pb.LearnerState(protocol_version=1, instance_id="a", run_id="run", address=":4431", weight=1.0)


def ended_by(address: str, method: str, *requests: bytes, token: str = "") -> tuple[grpc.StatusCode, str]:
    """Returns status and details of a call with these requests, which the broker ends."""
    metadata = (("authorization", f"Bearer {token}"),) if token else ()
    with grpc.insecure_channel(address, [("grpc.use_local_subchannel_pool", 1)]) as channel:
        call = channel.stream_stream(f"/kubebeast.v1.Broker/{method}", None, None)
        with pytest.raises(grpc.RpcError) as error:
            list(call(iter(requests), metadata=metadata, timeout=TIMEOUT_S))
        return error.value.code(), error.value.details() or ""


@contextlib.contextmanager
def registered(broker: BrokerProcess, state: Callable[[], bytes], **access: object) -> Iterator[None]:
    service = Service(name="the broker", address=broker.address, method="/kubebeast.v1.Broker/Register", **access)  # type: ignore[arg-type]
    call = KeptCall(service, state=state, take=lambda message: None, refresh_s=1.0)
    call.start()
    with contextlib.closing(call):
        broker.wait_until(lambda fleet: [run["run_id"] for run in fleet["runs"]] == ["run"])
        yield


def file_of(folder: Path, text: str) -> Path:
    path = folder / "token"
    path.write_text(text)
    return path


@pytest.mark.parametrize("method", METHODS)
def test_garbage_ends_its_call_only(tmp_path: Path, method: str) -> None:
    with BrokerProcess(tmp_path) as broker, registered(broker, LEARNER.SerializeToString):
        assert ended_by(broker.address, method, b"\xff" * 40)[0] is grpc.StatusCode.INVALID_ARGUMENT
        assert ended_by(broker.address, method, b"")[0] is grpc.StatusCode.INVALID_ARGUMENT
        assert ended_by(broker.address, method, b"x" * (1 << 20))[0] is grpc.StatusCode.RESOURCE_EXHAUSTED
        with socket.create_connection(broker.address.split(":"), TIMEOUT_S) as connection:  # type: ignore[arg-type]
            connection.sendall(b"GET / HTTP/1.0\r\n\r\n")
            while connection.recv(4096):
                pass
        assert [run["run_id"] for run in broker.fleet()["runs"]] == ["run"]
        assert 'kubebeast_broker_calls_refused_total{code="invalid_argument"} 2.0' in broker.metrics()


def test_a_change_of_a_fixed_field_ends_the_call(tmp_path: Path) -> None:
    other = pb.LearnerState(protocol_version=1, instance_id="a", run_id="another", address=":4431", weight=1.0)
    with BrokerProcess(tmp_path) as broker:
        code, details = ended_by(broker.address, "Register", LEARNER.SerializeToString(), other.SerializeToString())

        assert code is grpc.StatusCode.INVALID_ARGUMENT
        assert "another" in details


@pytest.mark.parametrize("method", METHODS)
def test_a_peer_without_a_token_is_refused(tmp_path: Path, method: str) -> None:
    with BrokerProcess(tmp_path, f"--token-file={file_of(tmp_path, TOKEN)}") as broker:
        for token, reason in (("", "missing"), ("wrong", "wrong")):
            code, details = ended_by(broker.address, method, LEARNER.SerializeToString(), token=token)
            assert (code, details) == (grpc.StatusCode.UNAUTHENTICATED, f"the bearer token is {reason}")
        assert broker.fleet() == {"runs": [], "streams": []}
        with registered(broker, LEARNER.SerializeToString, token_file=f"{tmp_path / 'token'}"):
            pass
        assert TOKEN not in broker.log_path.read_text()


def test_a_peer_needs_a_certificate_if_the_broker_has_an_authority(tmp_path: Path) -> None:
    authority = make_ca(tmp_path)
    own, peer = issue(authority, tmp_path, "broker"), issue(authority, tmp_path, "peer")
    flags = (f"--tls-cert={own.cert}", f"--tls-key={own.key}", f"--tls-ca={authority.pem}")
    files = TlsFiles(f"{peer.cert}", f"{peer.key}", f"{authority.pem}")
    with BrokerProcess(tmp_path, *flags) as broker:
        code, _ = ended_by(broker.address, "Register", LEARNER.SerializeToString())
        assert code is grpc.StatusCode.UNAVAILABLE
        with registered(broker, LEARNER.SerializeToString, tls=files):
            pass


def test_more_learners_than_the_limit_are_refused(tmp_path: Path) -> None:
    second = pb.LearnerState(protocol_version=1, instance_id="b", run_id="other", address=":4432", weight=1.0)
    with BrokerProcess(tmp_path, "--max-learners=1") as broker, registered(broker, LEARNER.SerializeToString):
        code, details = ended_by(broker.address, "Register", second.SerializeToString())

        assert (code, details) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "max_learners = 1")
