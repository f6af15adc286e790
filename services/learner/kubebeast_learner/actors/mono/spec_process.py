"""A process that makes one environment, tells what it observes and takes, and is ended: whatever its code does, the
learner lives. Imports no torch.
"""

import multiprocessing
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Literal, NamedTuple

from kubebeast_envserver.envs.factory import EnvironmentFailure, make_vector_env, num_agents_of, resolve_config
from kubebeast_envserver.faults.hang_watch import HangWatch, end_process
from kubebeast_envserver.faults.watched_env import watched
from kubebeast_envserver.rows.stream_status import StreamStatus
from kubebeast_learner.actors.env_spec import EnvSpec
from kubebeast_learner.actors.mono.own_process import LOG_NAME, begin
from kubebeast_learner.config import ConfigError, MonoConfig

_Answer = tuple[Literal["made"], "MadeEnv"] | tuple[Literal["unusable", "failed"], str]


class MadeEnv(NamedTuple):
    """What the environment turned out to be."""

    spec: EnvSpec
    num_agents: int
    """Of one environment; num_actors counts each."""


_END_GRACE_S = 1.0


class SpecError(Exception):
    """The environment cannot be made; the message says why."""


class SpecProcess:
    """For one thread."""

    def __init__(self, config: MonoConfig, folder: Path) -> None:
        """Starts it. folder: of the run."""
        context = multiprocessing.get_context("spawn")
        self._status: StreamStatus = context.RawValue(StreamStatus)
        self._hang_watch = HangWatch(config.actors.env_timeout_s)
        self._env_timeout_s = config.actors.env_timeout_s
        self._log_path = folder / LOG_NAME
        self._answer, theirs = context.Pipe(duplex=False)
        arguments = (config, self._status, theirs, folder)
        self._process = context.Process(target=_tell, args=arguments, name="spec", daemon=True)
        self._process.start()
        theirs.close()  # so that its death ends the answer

    def wait(self, timeout_s: float) -> MadeEnv | None:
        """None while it computes. Raises ConfigError or SpecError; kills it when it computes for too long."""
        if not self._answer.poll(timeout_s):
            self._hang_watch.look(self._process, self._status)
            return None
        try:
            answer: _Answer = self._answer.recv()
        except EOFError:
            raise SpecError(self._death()) from None
        if answer[0] == "made":
            return answer[1]
        raise (ConfigError if answer[0] == "unusable" else SpecError)(answer[1])

    def end(self) -> None:
        """By force after a grace period. Idempotent."""
        end_process(self._process, _END_GRACE_S)
        self._answer.close()

    def _death(self) -> str:
        where = f"(output in {self._log_path})"
        if self._hang_watch.is_killing:
            return f"making the environment took more than env_timeout_s = {self._env_timeout_s:g} s {where}"
        self._process.join()
        return f"the process that made the environment ended with status {self._process.exitcode} {where}"


def _tell(config: MonoConfig, status: StreamStatus, answer: Connection, folder: Path) -> None:
    begin(folder, config.run)
    env_id, making = config.actors.env, config.actors.making
    try:
        with watched(status):
            env_config = resolve_config(env_id, **making)
            num_agents = num_agents_of(env_id, making["env_kwargs"], making["wrappers"])
            env = make_vector_env(env_id, num_agents, **making)
    except ValueError as error:
        answer.send(("unusable", str(error)))
        return
    except EnvironmentFailure as failure:
        answer.send(("failed", str(failure)))
        return
    spec = EnvSpec.of(env_id, env.spec_observation, env.spec_action, env_config)
    answer.send(("made", MadeEnv(spec, num_agents)))
    env.close()
