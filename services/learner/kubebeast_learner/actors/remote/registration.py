"""Registration of a learner at a broker, which gives it streams of a fleet that several runs share."""

import logging
import math
import uuid
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Protocol, Self

from kubebeast_common.access.addresses import EVERYWHERE, EVERYWHERE_IPV4
from kubebeast_common.access.kept_call import KeptCall, Service
from kubebeast_common.access.tls_files import TlsFiles
from kubebeast_common.pool.demand import demand_ratio, make_loads
from kubebeast_learner.config import PoolConfig
from kubebeast_learner.config.pool import SharingConfig, expanded
from kubebeast_protos.v1 import PROTOCOL_VERSION
from kubebeast_protos.v1 import broker_pb2 as pb

if TYPE_CHECKING:  # it loads the algorithm
    from kubebeast_learner.run.snapshot import Snapshot

METHOD = "/kubebeast.v1.Broker/Register"
LOOK_S = 1.0
"""Interval at which the number of usable streams is estimated."""
LEAST_CHANGE = 0.15
"""Relative change of that number from which it is sent: streams should not move for noise."""

logger = logging.getLogger(__name__)


class RegisteredActors(Protocol):
    """The part of RemoteActors that a registration reads. Thread-safe."""

    is_draining: bool

    def stats(self) -> Mapping[str, int]: ...


class Registration:
    """A learner at its broker, from the beginning of the context to its end, or until the actors drain."""

    def __init__(
        self,
        pool: PoolConfig,
        sharing: SharingConfig,
        *,
        run_id: str,
        address: str,
        weight: float,
        actors: RegisteredActors,
        snapshot: "Callable[[], Snapshot | None]",
    ) -> None:
        """The files of `pool` give access to the broker.

        Args:
            address: Address for env-servers, as in LearnerState.
            weight: That of this learner, a part of `sharing.broker_weight`.
            snapshot: Returns the newest statistics of the training.
        """
        self._instance_id = uuid.uuid4().hex
        self._run_id, self._address, self._weight = run_id, address, weight
        self._actors = actors
        self._snapshot = snapshot
        self._usable = 0
        self._num_streams: int | None = None
        authorities = expanded(sharing.broker_tls_ca or pool.tls_ca)
        files = TlsFiles(cert=expanded(pool.tls_cert), key=expanded(pool.tls_key), ca=authorities)
        service = Service(
            name="the broker",
            address=sharing.broker,
            method=METHOD,
            tls=files if files.ca else TlsFiles(),
            token_file=expanded(pool.token_file),
        )
        self._call = KeptCall(service, state=self._state, take=self._take, refresh_s=LOOK_S)

    def __enter__(self) -> Self:
        self._call.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._call.close()

    def _state(self) -> bytes:
        if self._actors.is_draining:
            self._call.end()
        usable = usable_streams(self._actors.stats(), self._snapshot())
        if abs(usable - self._usable) > LEAST_CHANGE * self._usable or usable == 0:
            self._usable = usable
        return pb.LearnerState(
            protocol_version=PROTOCOL_VERSION,
            instance_id=self._instance_id,
            run_id=self._run_id,
            address=self._address,
            weight=self._weight,
            usable_streams=self._usable,
            has_ended=self._call.is_ending,
        ).SerializeToString()

    def _take(self, message: bytes) -> None:
        num_streams = pb.LearnerShare.FromString(message).streams
        if num_streams != self._num_streams:
            logger.debug("the broker gives this learner %d streams", num_streams)
            self._num_streams = num_streams


def usable_streams(stats: Mapping[str, int], snapshot: "Snapshot | None") -> int:
    """Returns the number of streams that the learner could use, at least 1; 0 if it is unknown, and thus any number."""
    streams = stats["streams"]
    if streams == 0 or snapshot is None or snapshot.starved_ratio is None:
        return 0
    loads = make_loads(
        starved_ratio=snapshot.starved_ratio,
        inference_busy_ratio=snapshot.inference_busy_ratio,
        cpu_busy_ratio=None,
        policy_lag_updates=None if snapshot.last_update is None else snapshot.last_update.policy_lag,
    )
    return max(1, math.ceil(streams * demand_ratio(loads, stats["streams_parked"] / streams)))


def advertised(bound: str) -> str:
    """Returns the address that env-servers are to dial if a pool listens on `bound`: without a host, which the broker
    then knows, if that is every address of the machine.
    """
    host, _, port = bound.rpartition(":")
    return f":{port}" if host in (EVERYWHERE, EVERYWHERE_IPV4) else bound
