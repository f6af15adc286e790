"""Common parts of both vector environments: fleet, spaces, exchange, statistics and HTTP endpoint."""

from typing import Any

from kubebeast_common.http_endpoint import HttpEndpoint
from kubebeast_common.metrics import Values
from kubebeast_common.spec.spaces import Array, Batch, action_leaves, action_space, observation_batch, observation_space
from kubebeast_fleet.exchange import Exchange
from kubebeast_fleet.fleet import Fleet
from kubebeast_fleet.metrics import make_registry
from kubebeast_native import Episode, StreamInfo


class Playing:
    """A fleet with known spaces, after the first Hello. Not thread-safe, except `stats`, `values` and `streams`."""

    def __init__(
        self,
        address: str,
        num_envs: int,
        *,
        batch_size: int,
        split_streams: bool,
        http_address: str = "",
        **options: Any,
    ) -> None:
        """Blocks until the first Hello. Raises the errors of Fleet, and FleetTimeoutError."""
        self._exchange: Exchange | None = None
        self._http: HttpEndpoint | None = None
        self._fleet = Fleet(address, num_envs, batch_size=batch_size, **options)
        try:
            self.registry = make_registry(self.values)
            if http_address:
                # Ready before the first env-server: in Kubernetes only a ready pod can be dialed.
                self._http = HttpEndpoint(http_address, health=lambda: "", readiness=lambda: "", registry=self.registry)
            spec = self._fleet.spec()
        except BaseException:
            self.close()
            raise
        self._observation, self._action = spec.observation, spec.action
        self.observation_space = observation_space(spec.observation)
        self.action_space = action_space(spec.action)
        self.exchange = self._exchange = Exchange(self._fleet, spec, split_streams=split_streams)

    @property
    def address(self) -> str:
        return self._fleet.pool.address

    @property
    def http_port(self) -> int | None:
        return None if self._http is None else self._http.port

    def observation(self, arrays: list[Array]) -> Batch:
        return observation_batch(self._observation, arrays)

    def action_leaves(self, actions: Any, num_rows: int) -> list[Array]:
        return action_leaves(self._action, actions, num_rows)

    def stats(self) -> dict[str, int]:
        """Returns ActorPool.stats and the returned rows by kind: rows_first, rows_step and rows_lost."""
        rows = {} if self._exchange is None else self._exchange.num_rows
        return self._fleet.pool.stats() | {f"rows_{kind}": count for kind, count in rows.items()}

    def values(self) -> Values:
        return {**self.stats(), **self._fleet.pool.histograms()}

    def streams(self) -> list[StreamInfo]:
        return self._fleet.pool.streams()

    def take_episodes(self) -> list[Episode]:
        return self._fleet.pool.take_episodes()

    def close(self) -> None:
        """Stops the endpoint and the fleet. Idempotent."""
        if self._http is not None:
            self._http.close()
        self._fleet.close()
