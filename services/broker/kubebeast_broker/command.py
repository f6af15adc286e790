"""Entry point of `kubebeast broker`: serves until a signal."""

import asyncio
import contextlib
import json
import logging
from collections.abc import Iterator

from kubebeast_broker.broker import Broker
from kubebeast_broker.metrics import make_registry
from kubebeast_broker.server import open_server
from kubebeast_broker.service import Service
from kubebeast_broker.settings import BrokerConfig
from kubebeast_broker.view import View, look_at
from kubebeast_common import log
from kubebeast_common.access.addresses import is_local
from kubebeast_common.access.token_file import TokenFileError, authorization
from kubebeast_common.http_endpoint import HttpEndpoint
from kubebeast_common.process import open_files
from kubebeast_common.process.stopping import Stop, stop_on_signals
from kubebeast_common.settings import ConfigError

DRAIN_S = 1.0
"""Time for calls to end at the end of the broker."""
LOOK_S = 5.0
"""Longest time that a page waits for the event loop."""

logger = logging.getLogger(__name__)


def run(config: BrokerConfig) -> int:
    """Serves learners and env-servers until a signal. Returns the exit status; raises ConfigError."""
    log.configure(config.log_level, config.log_format)
    try:
        authorization(config.token_path)
    except TokenFileError as error:
        raise ConfigError(str(error)) from error
    open_files.make_room("max_streams", config.max_streams, 1)
    with stop_on_signals("the broker ends, and streams stay with their learners") as stop:
        asyncio.run(_serve(config, stop))
        return stop.exit_status


async def _serve(config: BrokerConfig, stop: Stop) -> None:
    broker = Broker(config.max_learners, config.max_streams)
    service = Service(broker, config.token_path)
    server, port = await open_server(config, service)
    host = config.address.rpartition(":")[0]
    logger.info("listening on %s:%d", host, port)
    unset = [name for name in ("tls_cert", "token_file") if getattr(config, name) is None]
    if unset and not is_local(config.address):
        logger.warning("others can read the traffic or register runs; not set: %s", " and ".join(unset))
    with _http_endpoint(config, broker, service):
        async with asyncio.TaskGroup() as tasks:
            assigning = tasks.create_task(broker.run())
            await asyncio.to_thread(stop.wait_for_signal)
            assigning.cancel()
        service.close()
        await server.stop(DRAIN_S)


@contextlib.contextmanager
def _http_endpoint(config: BrokerConfig, broker: Broker, service: Service) -> Iterator[None]:
    """Opens the HTTP endpoint, or none for "". Raises ConfigError if http_address cannot be bound."""
    if not config.http_address:
        yield
        return
    loop = asyncio.get_running_loop()

    async def look() -> View:
        return look_at(broker, service.num_refused)

    def look_from_thread() -> View:
        return asyncio.run_coroutine_threadsafe(look(), loop).result(LOOK_S)

    def fleet() -> bytes:
        view = look_from_thread()
        return json.dumps(
            {"runs": [run._asdict() for run in view.runs], "streams": [each._asdict() for each in view.streams]}
        ).encode()

    try:
        endpoint = HttpEndpoint(
            config.http_address,
            health=broker.problem,
            readiness=lambda: "",
            registry=make_registry(look_from_thread),
            pages={"/fleet": fleet},
        )
    except OSError as error:
        raise ConfigError(f"http_address = {config.http_address!r}: {error.strerror}") from error
    logger.info("serving HTTP on port %d", endpoint.port)
    with endpoint:
        yield
