"""A process that makes one environment, reports its observations and actions, and ends: the learner survives any
failure of the environment's code. Imports no torch.
"""

import multiprocessing
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Literal, NamedTuple

from kubebeast_common.process.family import Family, kill_own_family
from kubebeast_common.process.leaving import leave
from kubebeast_common.spec.env_spec import EnvSpec
from kubebeast_envserver.envs.factory import EnvironmentFailure, make_vector_env, num_agents_of, resolve_config
from kubebeast_envserver.faults.hang_watch import HangWatch, end_process
from kubebeast_envserver.faults.watched_env import watched
from kubebeast_envserver.rows.rows import OptionsError
from kubebeast_envserver.rows.stream_status import StreamStatus
from kubebeast_learner.actors.mono.own_process import LOG_NAME, begin
from kubebeast_learner.config import ConfigError, MonoConfig

_Answer = tuple[Literal["made"], "MadeEnv"] | tuple[Literal["unusable", "failed"], str]


class MadeEnv(NamedTuple):
    """The environment that the process has made."""

    spec: EnvSpec
    num_agents: int
    """Number of agents of one environment; num_actors counts each."""


_END_GRACE_S = 1.0


class SpecError(Exception):
    """The environment cannot be made; the message gives the reason."""


class SpecProcess:
    """The process on the learner's side. Not thread-safe."""

    def __init__(self, config: MonoConfig, folder: Path) -> None:
        """Starts the process. folder: folder of the run."""
        context = multiprocessing.get_context("spawn")
        self._status: StreamStatus = context.RawValue(StreamStatus)
        self._hang_watch = HangWatch(config.actors.env_timeout_s)
        self._env_timeout_s = config.actors.env_timeout_s
        self._log_path = folder / LOG_NAME
        self._answer, theirs = context.Pipe(duplex=False)
        arguments = (config, self._status, theirs, folder)
        self._process = context.Process(target=_tell, args=arguments, name="spec", daemon=True)
        self._family = Family()
        with self._family.starting():
            self._process.start()
        theirs.close()

    def wait(self, timeout_s: float) -> MadeEnv | None:
        """Returns the environment, None while the process computes. Kills it if it computes for too long.

        Raises ConfigError if the settings are unusable, SpecError if the environment or the process fails.
        """
        if not self._answer.poll(timeout_s):
            if self._process.exitcode is None:
                self._hang_watch.look(self._process, self._status)
                return None
            self._family.kill()  # the family may hold the pipe open
            if not self._answer.poll(0):
                raise SpecError(self._death())
        try:
            answer: _Answer = self._answer.recv()
        except EOFError:
            raise SpecError(self._death()) from None
        if answer[0] == "made":
            return answer[1]
        raise (ConfigError if answer[0] == "unusable" else SpecError)(answer[1])

    def end(self) -> None:
        """Ends the process, by force after a grace period. Idempotent."""
        end_process(self._process, _END_GRACE_S)
        self._family.kill()
        self._answer.close()

    def _death(self) -> str:
        where = f"(output in {self._log_path})"
        if self._hang_watch.is_killing:
            return f"making the environment took more than env_timeout_s = {self._env_timeout_s:g} s {where}"
        end_process(self._process, _END_GRACE_S)  # an environment may have closed the pipe
        return f"the process that made the environment ended with status {self._process.exitcode} {where}"


def _tell(config: MonoConfig, status: StreamStatus, answer: Connection, folder: Path) -> None:
    begin(folder, config.run)
    _make(config, status, answer)
    leave(0, last=kill_own_family)


def _make(config: MonoConfig, status: StreamStatus, answer: Connection) -> None:
    env_id, making = config.actors.env, config.actors.making
    try:
        with watched(status):
            env_config = resolve_config(env_id, **making)
            num_agents = num_agents_of(env_id, making["env_kwargs"], making["wrappers"])
            env = make_vector_env(env_id, num_agents, statistics=(), **making)
            if config.curriculum.curriculum:
                env.set_options({0: {}})
    except ValueError as error:
        answer.send(("unusable", str(error)))
        return
    except OptionsError as error:
        answer.send(("unusable", f"curriculum = {config.curriculum.curriculum!r}: {error}"))
        return
    except EnvironmentFailure as failure:
        answer.send(("failed", str(failure)))
        return
    if env.takes_turns:
        reason = "agents take turns, which kubebeast mono does not play: kubebeast train does, on this machine too"
        answer.send(("unusable", f"env = {env_id!r}: {reason}"))
        return
    spec = EnvSpec.of(env_id, env.spec_observation, env.spec_action, env_config)
    answer.send(("made", MadeEnv(spec, num_agents)))
    env.close()
