"""An env-server's stream in a thread of the test's process, for the tests of the native actor pool."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from kubebeast_envserver.rows.rows import HostedEnv
from kubebeast_envserver.stream.session import Identity, Session
from kubebeast_envserver.stream.transport import open_stream


@contextmanager
def hosted(env: HostedEnv, address: str) -> Iterator[None]:
    """Steps `env` for the pool at `address`; sends Bye at the end of the context."""
    identity = Identity(env_server_id="pod-0", instance_id="1", env_id="Test-v0")
    with open_stream(address) as stream:
        session = Session(stream, env, identity, lz4=True, welcome_timeout_s=60.0)
        thread = threading.Thread(target=session.run)
        thread.start()
        try:
            yield
        finally:
            session.shut_down()
            thread.join()
