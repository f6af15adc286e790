"""A fleet of env-servers that dial in: the native pool without rollouts, its log, and the timeout of a wait."""

import logging
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from kubebeast_common.access.addresses import bindable, is_local
from kubebeast_common.access.tls_files import TlsFiles, read_pem
from kubebeast_common.access.token_file import authorization
from kubebeast_common.pool.options_feed import OptionsFeed
from kubebeast_common.pool.stream_log import StreamLog
from kubebeast_common.spec.episode_options import to_text
from kubebeast_fleet.errors import FleetTimeoutError
from kubebeast_native import ActorPool, EnvSpec, InferenceBatch

logger = logging.getLogger(__name__)

_POLL_MS = 100
"""Interval in milliseconds at which a blocking wait handles signals."""
_TELL_INTERVAL_S = 1.0
_FLUSH_MS = 10
"""Maximum time in milliseconds that rows wait for a full batch."""


class Fleet:
    """A pool with slots 0 .. num_envs - 1. The environments of a stream get slots all together or not at all.

    A stream waits in reserve if there are too few free slots. Only one thread may call `spec`, `next_batch` and
    `close`; `pool` is thread-safe.
    """

    def __init__(
        self,
        address: str,
        num_envs: int,
        *,
        batch_size: int,
        env_id: str = "",
        fleet_timeout_s: float = 300.0,
        step_timeout_s: float = 60.0,
        max_envs_per_stream: int = 1024,
        next_options: Callable[[], Mapping[str, Any]] | None = None,
        tls_cert: str = "",
        tls_key: str = "",
        tls_ca: str = "",
        token_file: str = "",
    ) -> None:
        """Starts to listen. batch_size is the preferred number of rows per batch; for the others, see FleetOptions.

        Raises ValueError for an invalid argument, OSError if the address cannot be bound, and TlsError or
        TokenFileError for an unusable file.
        """
        if not 1 <= batch_size <= num_envs:
            raise ValueError(f"batch_size = {batch_size}: must be 1 to num_envs = {num_envs}")
        # The files are read again later, when the program may have changed its working directory.
        tls_cert, tls_key, tls_ca, token_file = map(_absolute, (tls_cert, tls_key, tls_ca, token_file))
        read_pem(TlsFiles(tls_cert, tls_key, tls_ca))
        authorization(token_file)
        self.num_envs = num_envs
        self._timeout_s = fleet_timeout_s
        self._log = StreamLog()
        self._tell_at = 0.0
        self.pool = ActorPool(
            address=bindable(address),
            run_id="fleet",
            unroll_length=0,
            batch_size=1,
            min_inference_rows=batch_size,
            max_inference_rows=batch_size,
            inference_timeout_ms=_FLUSH_MS,
            max_envs=num_envs,
            max_envs_per_stream=max_envs_per_stream,
            keep_surplus=True,
            step_timeout_ms=round(step_timeout_s * 1000),
            opening_env=env_id,
            episode_options=next_options is not None,
            tls_cert=tls_cert,
            tls_key=tls_key,
            tls_ca=tls_ca,
            token_file=token_file,
        )
        self._feed = None if next_options is None else OptionsFeed(self.pool, partial(_drawn, next_options))
        self.pool.start()
        if not is_local(address):
            _warn_about_access(self.pool.address, tls=bool(tls_cert), locked=bool(token_file or tls_ca))

    def spec(self) -> EnvSpec:
        """Blocks until the first env-server, returns its spec, and accepts streams.

        Raises FleetTimeoutError, and the errors of next_options.
        """
        logger.info("waiting for env-servers on %s", self.pool.address)
        deadline = time.monotonic() + self._timeout_s
        while (spec := self.pool.wait_env_spec(_POLL_MS)) is None:
            self._look_after(deadline)
        if self._feed is not None:
            self._feed.fill()
            self._feed.start()
        self.pool.open(num_logits=0, core_state_size=0)
        return spec

    def next_batch(self) -> InferenceBatch:
        """Blocks for the next rows, those of whole streams.

        Raises FleetTimeoutError, ClosedError after `close`, and the first error of next_options.
        """
        deadline = time.monotonic() + self._timeout_s
        while (batch := self.pool.next_inference(_POLL_MS)) is None:
            self._look_after(deadline)
        if self._feed is not None:
            self._feed.raise_error()
        if time.monotonic() >= self._tell_at:
            self._tell()
        return batch

    def close(self) -> None:
        """Ends all streams. Their env-servers keep dialing until the address is listened on again. Idempotent."""
        if self._feed is not None:
            self._feed.stop()
        self.pool.close()
        self._tell()
        self._log.flush()

    def _look_after(self, deadline: float) -> None:
        self._tell()
        if time.monotonic() >= deadline:
            stats = self.pool.stats()
            text = f"no row for {self._timeout_s:g} s on {self.pool.address}: "
            text += f"{stats['envs']} of {self.num_envs} environments are here"
            if stats["streams_in_reserve"]:
                text += (
                    f", and {stats['streams_in_reserve']} streams in reserve have more than fit: let num_envs be a "
                    "multiple of --envs-per-stream"
                )
            raise FleetTimeoutError(text)

    def _tell(self) -> None:
        self._log.tell(self.pool.take_stream_events())
        self._tell_at = time.monotonic() + _TELL_INTERVAL_S


def _drawn(next_options: Callable[[], Mapping[str, Any]], count: int) -> list[str]:
    """Returns the texts of further options. Raises the errors of next_options, and ValueError for a value without
    one.
    """
    return [to_text(next_options()) for _ in range(count)]


def _absolute(path: str) -> str:
    """Returns the absolute path of a file; "" for none."""
    return str(Path(path).expanduser().absolute()) if path else ""


def _warn_about_access(address: str, *, tls: bool, locked: bool) -> None:
    if not tls:
        logger.warning("listening on %s without TLS: traffic can be read and changed; see tls_cert", address)
    if not locked:
        logger.warning(
            "listening on %s without a token: every host that reaches it can join; see token_file and tls_ca", address
        )
