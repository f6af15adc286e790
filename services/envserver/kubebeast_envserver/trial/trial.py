"""Trial of an environment: random actions, stepped as in an env-server, and a list of its faults."""

import math
import re
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kubebeast_common.backoff import FaultPolicy
from kubebeast_common.settings import ConfigError
from kubebeast_common.spec.leaves import LeafSpec
from kubebeast_common.spec.limits import MAX_ID_CHARACTERS
from kubebeast_envserver.envs.factory import (
    EnvironmentFailure,
    HostedEnv,
    Leaf,
    StepRows,
    make_vector_env,
    num_agents_of,
)
from kubebeast_envserver.envs.wrapping import make_env
from kubebeast_envserver.faults.lenient_check import LenientCheck
from kubebeast_envserver.faults.space_checks import space_violations
from kubebeast_envserver.rows.actions import action_leaves_of
from kubebeast_envserver.rows.advice import collected
from kubebeast_envserver.rows.limits import message_violation
from kubebeast_envserver.rows.rows import AllQuarantined
from kubebeast_envserver.rows.spaces import UnsupportedSpaceError
from kubebeast_envserver.rows.stream_status import FAILURE_KINDS, StreamStatus
from kubebeast_envserver.stream.codec import encode_observations, offer_compression
from kubebeast_envserver.trial.settings import TrialConfig
from kubebeast_protos.v1 import actor_pool_pb2 as pb

FAULTS = FaultPolicy(max_failures=3)
"""Limit of failures, lower than that of an env-server, as a user waits for the result."""
_NUMBERS = re.compile(r"(?<!at )(?<![\w.])[-+]?\d[\w.+-]*")
"""All numbers except those of a place in a structure."""


@dataclass(slots=True)
class Violation:
    text: str
    after_steps: int
    """Steps before the first occurrence."""
    count: int = 1


@dataclass(frozen=True, slots=True)
class FinishedEpisode:
    episode_return: float
    length: int
    terminated: bool
    """False if it was truncated."""


@dataclass(slots=True)
class Trial:
    """Results of one environment."""

    num_agents: int = 1
    """Agents in the environment, each with its own steps and episodes."""
    observation: list[Leaf] = field(default_factory=list)
    action: list[Leaf] = field(default_factory=list)
    steps: int = 0
    """Actions that had an effect, summed over the agents."""
    env_s: float = 0.0
    """Time inside the environment, including resets."""
    sent_bytes: int = 0
    """Bytes of the Observations messages of all rows, without compression."""
    compressed_bytes: int = 0
    """The same with the compression that an env-server offers."""
    episodes: list[FinishedEpisode] = field(default_factory=list)
    violations: list[Violation] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """Remarks that are not violations."""
    given_up: bool = False
    """True if it failed too often to be stepped on."""

    @property
    def steps_per_s(self) -> float:
        """Steps per second of one environment in one process."""
        return self.steps / self.env_s if self.env_s else 0.0

    @property
    def bytes_per_step(self) -> float:
        """Bytes of Observations messages per step of one environment, without compression."""
        return self.sent_bytes / max(1, self.steps)

    @property
    def compressed_bytes_per_step(self) -> float:
        return self.compressed_bytes / max(1, self.steps)

    def to_plain(self) -> dict[str, Any]:
        """Returns the fields and properties by name."""
        names = "steps_per_s", "bytes_per_step", "compressed_bytes_per_step"
        return asdict(self) | {name: getattr(self, name) for name in names}

    def note(self, text: str) -> None:
        """Adds a violation; one that only differs from an earlier one in numbers is counted with it."""
        for violation in self.violations:
            if _NUMBERS.sub("#", violation.text) == _NUMBERS.sub("#", text):
                violation.count += 1
                return
        self.violations.append(Violation(text, self.steps))


def try_env(config: TrialConfig) -> Trial:
    """Makes the environment and steps it to the limit of `config`, or until it fails for good.

    Raises ConfigError if the settings make no environment.
    """
    with collected() as notes:
        trial = _try_env(config)
    trial.notes += notes
    return trial


def _try_env(config: TrialConfig) -> Trial:
    trial, status = Trial(), StreamStatus()
    making = config.making
    if len(config.env) > MAX_ID_CHARACTERS or not (config.env.isascii() and config.env.isprintable()):
        trial.note(f"a learner takes ids of at most {MAX_ID_CHARACTERS} printable ASCII characters")
    try:
        env = make_vector_env(
            config.env,
            num_agents_of(config.env, making["env_kwargs"], making["wrappers"]),
            seed=config.seed,
            **making,
            full_stacks=False,
            policy=FAULTS,
            status=status,
            make_check=lambda space, mask: LenientCheck(space, mask, trial.note),
        )
    except UnsupportedSpaceError as error:
        trial.violations += [Violation(text, 0) for text in _space_violations(config) or [str(error)]]
        return trial
    except ValueError as error:
        raise ConfigError(str(error)) from error
    except EnvironmentFailure as failure:
        trial.note(str(failure))
        return trial
    trial.num_agents = env.num_agents
    trial.observation, trial.action = env.spec_observation, env.spec_action
    if (violation := message_violation(trial.observation, trial.action, config.max_message_mib)) is not None:
        trial.note(violation)
    with closing(env):
        try:
            _play(env, trial, config, status)
        except AllQuarantined as failure:
            trial.note(failure.last_failure)
            trial.given_up = True
        except EnvironmentFailure as failure:
            trial.note(str(failure))
    return trial


def random_actions(
    leaves: Sequence[LeafSpec], allowed: NDArray[np.bool_] | None, num_envs: int, generator: np.random.Generator
) -> list[NDArray[Any]]:
    """Returns an array [B, *shape] per leaf: any allowed category, or numbers around 0, from -1 to 1 if bounded.

    `allowed` is bool [B, n], the categories of all choices in order; None allows all.
    """
    actions: list[NDArray[Any]] = []
    start = 0
    for leaf in leaves:
        shape = (num_envs, *leaf.shape)
        if leaf.num_categories:
            ranks = generator.random((*shape, leaf.num_categories))
            if allowed is not None:
                end = start + math.prod(ranks.shape[1:])
                ranks[~allowed[:, start:end].reshape(ranks.shape)] = -1.0
                start = end
            actions.append(ranks.argmax(-1).astype(leaf.dtype))
        else:
            numbers = generator.uniform(-1.0, 1.0, shape) if leaf.bounded else generator.standard_normal(shape)
            actions.append(numbers.astype(leaf.dtype))
    return actions


def _space_violations(config: TrialConfig) -> list[str]:
    making = config.making
    try:
        made = make_env(config.env, making["env_kwargs"], making["wrappers"])
    except ValueError:  # a vector or several agents: there is no single environment to inspect
        return []
    with closing(made) as env:
        observation = space_violations(env.observation_space)
        action = space_violations(env.action_space, action_leaves_of)
    return [*(f"observation space: {text}" for text in observation), *(f"action space: {text}" for text in action)]


def _play(env: HostedEnv, trial: Trial, config: TrialConfig, status: StreamStatus) -> None:
    generator = np.random.default_rng(config.seed)
    began = time.perf_counter()
    rows = env.reset()
    trial.env_s += time.perf_counter() - began
    num_failures = _note_failures(trial, rows, status, 0)
    _count(trial, rows)
    while trial.steps < config.steps and not 0 < config.episodes <= len(trial.episodes):
        actions = random_actions(env.spec_action, _allowed(env, rows), env.num_envs, generator)
        began = time.perf_counter()
        rows = env.step(actions)
        trial.env_s += time.perf_counter() - began
        trial.steps += rows.num_steps()
        num_failures = _note_failures(trial, rows, status, num_failures)
        _count(trial, rows)


def _allowed(env: HostedEnv, rows: StepRows) -> NDArray[np.bool_] | None:
    masks = [rows.observation[index] for index, leaf in enumerate(env.spec_observation) if leaf.is_action_mask]
    return masks[0] if masks else None


def _note_failures(trial: Trial, rows: StepRows, status: StreamStatus, before: int) -> int:
    """Adds the failures since `before`, the last total. Returns the new total."""
    num_failures: int = sum(getattr(status, f"failures_{kind}") for kind in FAILURE_KINDS)
    if num_failures > before:
        for reason in dict.fromkeys(reason for _, reason in rows.failures):
            trial.note(reason)
    return num_failures


def _count(trial: Trial, rows: StepRows) -> None:
    leaves = trial.observation
    offered = [offer_compression(leaf, lz4_allowed=True) for leaf in leaves]
    plain = [pb.COMPRESSION_NONE for _ in leaves]
    trial.sent_bytes += encode_observations(trial.steps, rows, leaves, plain).ByteSize()
    trial.compressed_bytes += encode_observations(trial.steps, rows, leaves, offered).ByteSize()
    trial.episodes += [
        FinishedEpisode(episode_return, length, bool(rows.terminated[env]))
        for env, episode_return, length in rows.episodes
    ]
