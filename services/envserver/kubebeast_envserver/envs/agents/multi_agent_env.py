"""Agents that share a policy: each is a row of its own."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from kubebeast_common.backoff import FaultPolicy
from kubebeast_common.spec.env_config import Wrapper
from kubebeast_common.text import printable
from kubebeast_envserver.envs.agents.joint_env import AgentsCheck, JointEnv
from kubebeast_envserver.envs.agents.joint_ids import make_joint_env
from kubebeast_envserver.envs.agents.turn_env import TurnEnv
from kubebeast_envserver.envs.gymnasium_env import MakeCheck, render_options
from kubebeast_envserver.faults.env_checks import EnvCheck, EnvCheckError
from kubebeast_envserver.faults.guarded_envs import GuardedEnvs
from kubebeast_envserver.faults.made_env import make_with_processes
from kubebeast_envserver.rows.row_builder import RowBuilder
from kubebeast_envserver.rows.rows import AgentStep, Array, StepRows, WithoutOptions
from kubebeast_envserver.rows.stream_status import StreamStatus
from kubebeast_envserver.rows.texts import without_texts


class MultiAgentEnv(WithoutOptions):
    """Environments of one id with the PREFIX of joint_ids as a HostedEnv: B rows, num_agents for each environment.

    An agent that does not play is absent, and one that plays may wait for the turns of others. If no agent of an
    environment plays any more, the next step resets it. An environment that fails is interrupted with all its agents,
    which are absent until it is created again.
    """

    kind = "environments of several agents"

    def __init__(
        self,
        env_id: str,
        num_envs: int,
        env_kwargs: dict[str, Any],
        seed: int | None,
        *,
        wrappers: Sequence[Wrapper] = (),
        render: str | None = None,
        policy: FaultPolicy | None = None,
        status: StreamStatus | None = None,
        make_check: MakeCheck = EnvCheck,
    ) -> None:
        """`num_envs` is B, a multiple of the number of agents. An environment with the first row i gets seed + i.

        Other arguments and errors are those of GymnasiumEnv.
        """
        if render is not None:
            env_kwargs = {**env_kwargs, "render_mode": render}
        make = partial(make_joint_env, env_id, env_kwargs, wrappers)
        made = make_with_processes(make)
        first = made.env
        self.render_mode, self.render_fps = render_options(first.metadata)
        self.num_envs, self.num_agents = num_envs, len(first.agents)
        self.takes_turns = isinstance(first, TurnEnv)
        if num_envs % self.num_agents:
            first.close()
            agents = printable(", ".join(map(str, first.agents)), 200)
            raise ValueError(
                f"num_envs = {num_envs}: counts agents, so it must be a multiple of the {self.num_agents} agents of "
                f"{env_id}: {agents}"
            )
        spaces = first.observation_space, first.action_space
        sent = without_texts(spaces[0])
        self._builder = RowBuilder(sent, spaces[1], num_envs)
        self.spec_observation, self.spec_action = self._builder.spec_observation, self._builder.spec_action
        check = AgentsCheck(first.agents, make_check(sent, self._builder.mask))
        seeds = [None if seed is None else seed + row for row in range(0, num_envs, self.num_agents)]
        again = partial(_make_again, make, first.agents)
        self._envs: GuardedEnvs[list[AgentStep | None]] = GuardedEnvs(again, made, spaces, seeds, check, policy, status)

    def reset(self) -> StepRows:
        self._builder.reset()
        return self._rows(self._envs.reset())

    def step(self, actions: list[Array]) -> StepRows:
        over = np.logical_and.reduce(self._builder.over.reshape(-1, self.num_agents), axis=1).tolist()
        each = list(self._builder.split(actions))
        joint = [each[row : row + self.num_agents] for row in range(0, self.num_envs, self.num_agents)]
        return self._rows(self._envs.step(joint, over))

    def render(self) -> Array:
        """Returns uint8 [B, H, W, 3]: the agents of an environment share a picture."""
        return np.repeat(self._envs.render(), self.num_agents, axis=0)

    def close(self) -> None:
        self._envs.close()

    def _rows(self, joint: list[list[AgentStep | None] | None]) -> StepRows:
        """Builds the rows. `joint` has one entry for each environment, None for a broken one. Raises AllQuarantined."""
        steps = [step for each in joint for step in each or [None] * self.num_agents]
        rows = self._builder.build(steps, np.array([step is None for step in steps]))
        if None not in joint:
            return rows
        failures = [
            (env * self.num_agents + agent, reason)
            for env, reason in self._envs.failures()
            for agent in range(self.num_agents)
        ]
        return replace(rows, failures=failures)


def _make_again(make: partial[JointEnv | TurnEnv], agents: tuple[Any, ...]) -> JointEnv | TurnEnv:
    """Makes an environment. Raises EnvCheckError if its agents are not `agents`."""
    env = make()
    if env.agents != agents:
        env.close()
        raise EnvCheckError("exception", "its possible_agents differ from those of the first environment")
    return env
