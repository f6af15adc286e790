"""A shutdown of an env-server's stream loses no step, at any line at which a signal may come."""

import contextlib
import itertools
import sys
from collections.abc import Callable, Iterator
from types import CodeType, FrameType
from typing import Any

import pytest

from kubebeast_envserver.stream.session import Identity, Session
from kubebeast_envserver.stream.transport import open_stream
from tests.integration.envserver_learner import TIMEOUT_S, learner
from tests.unit.envserver.envs.scripted_env import ScriptedEnv

STEP = [Session._play.__code__, Session._receive_actions.__code__]
LINES = [
    pytest.param(code, line, id=f"{code.co_name}-{line}")
    for code in STEP
    for line in sorted({line for *_, line in code.co_lines() if line is not None})
]
"""Lines that a stream runs at every step."""


@contextlib.contextmanager
def interrupted(code: CodeType, line: int, handler: Callable[[], None]) -> Iterator[None]:
    """Calls the handler in this thread, before it runs that line of the code for the third time."""
    times = itertools.count(1)

    def look(frame: FrameType, event: str, _: object) -> Any:
        if frame.f_code is not code:
            return None
        if event == "line" and frame.f_lineno == line and next(times) == 3:
            handler()
        return look

    before = sys.gettrace()
    sys.settrace(look)
    try:
        yield
    finally:
        sys.settrace(before)


@pytest.mark.usefixtures("transport")
@pytest.mark.parametrize(("code", "line"), LINES)
def test_every_step_is_told_wherever_the_shutdown_interrupts_it(code: CodeType, line: int) -> None:
    env = ScriptedEnv()
    identity = Identity(env_server_id="pod-0", instance_id="1", env_id="Test-v0")
    with learner() as server, open_stream(server.address) as stream:
        session = Session(stream, env, identity, lz4=True, welcome_timeout_s=TIMEOUT_S, max_steps=10)
        with interrupted(code, line, session.shut_down):
            session.run()
        told = [server.received.get(timeout=TIMEOUT_S) for _ in range(server.received.qsize())]
    steps = [request.observations.step for request in told if request.HasField("observations")]
    assert steps == list(range(len(env.actions) + 1))
    assert told[-1].HasField("bye")
