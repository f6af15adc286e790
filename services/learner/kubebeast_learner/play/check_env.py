"""`kubebeast check-env`: tries an environment and reports its messages, its model and all violations."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from kubebeast_common.spec.env_config import EnvConfig
from kubebeast_common.spec.env_spec import describe
from kubebeast_envserver.envs.factory import Leaf, resolve_config
from kubebeast_envserver.rows.limits import bytes_of_row
from kubebeast_learner.config import CheckEnvConfig, ConfigError
from kubebeast_learner.machine import torch_state
from kubebeast_learner.models import ModelSpecError, describe_inputs, make_model
from kubebeast_learner.models.torsos.known_layouts import with_known_layout
from kubebeast_learner.play.output import output_to_stderr
from kubebeast_learner.play.trial import Trial, try_env

EXIT_VIOLATIONS = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class CheckedEnv:
    """The trial of an environment and the model that it would get."""

    env: str
    config: EnvConfig
    trial: Trial
    model: str
    """Description of the model's inputs; empty if there is no model."""
    num_parameters: int
    max_message_mib: int

    @property
    def bytes_per_step(self) -> float:
        """Bytes of Observations messages per step of one environment, without compression."""
        return self.trial.sent_bytes / max(1, self.trial.steps)

    @property
    def compressed_bytes_per_step(self) -> float:
        return self.trial.compressed_bytes / max(1, self.trial.steps)

    def to_plain(self) -> Mapping[str, Any]:
        trial = self.trial
        return {
            "env": self.env,
            **self.config.to_plain(),
            **asdict(trial),
            "steps_per_s": trial.steps_per_s,
            "bytes_per_step": self.bytes_per_step,
            "compressed_bytes_per_step": self.compressed_bytes_per_step,
            "model": self.model,
            "num_parameters": self.num_parameters,
        }


def run(config: CheckEnvConfig) -> int:
    """Runs the command. Returns the exit status, 1 for violations. Raises ConfigError if no environment can be made."""
    console = Console()
    with output_to_stderr():  # the output of environments is not the result
        checked = check_env(config)
    if config.json:
        print(json.dumps(checked.to_plain()))
    else:
        print_tables(checked, console)
    return EXIT_VIOLATIONS if checked.trial.violations else 0


def check_env(config: CheckEnvConfig) -> CheckedEnv:
    """Tries the environment and makes its model. Raises ConfigError if no environment can be made."""
    try:
        told = resolve_config(config.env, **config.making)
    except ValueError as error:
        raise ConfigError(str(error)) from error
    with torch_state.of_environments():
        trial = try_env(config)
    model, num_parameters = "", 0
    rows = bytes_of_row(trial.observation, trial.action)
    if 0 < rows <= config.max_message_mib << 20:
        try:
            settings = with_known_layout(config.model, config.env, trial.observation)
            made = make_model(trial.observation, trial.action, settings)
            model = describe_inputs(made, trial.observation)
            num_parameters = sum(parameter.numel() for parameter in made.parameters())
        except ModelSpecError as error:
            trial.note(f"no model: {error}")
        except (MemoryError, RuntimeError) as error:  # such as that of torch's allocator
            trial.note(f"no model, as it takes too much memory: {' '.join(str(error).split())}")
    return CheckedEnv(
        env=config.env,
        config=told,
        trial=trial,
        model=model,
        num_parameters=num_parameters,
        max_message_mib=config.max_message_mib,
    )


def print_tables(checked: CheckedEnv, console: Console) -> None:
    """Prints the leaves, the facts of the trial, and every violation with its count."""
    trial = checked.trial
    _say(console, describe(checked.env, checked.config))
    if trial.observation:
        table = Table("leaf", "dtype", "shape", "frames", "values", "bytes")
        _add_leaves(table, "observation", trial.observation)
        _add_leaves(table, "action", trial.action)
        console.print(table)
        for line in _facts(checked):
            _say(console, line)
    for note in trial.notes:
        _say(console, f"note: {note}")
    for violation in trial.violations:
        times = f"{violation.count:,} times, first after {violation.after_steps:,} steps: "
        _say(console, f"violation: {times * (violation.count > 1)}{violation.text}")
    _say(console, f"{len(trial.violations) or 'no'} violation{'s' * (len(trial.violations) != 1)}")


def _add_leaves(table: Table, kind: str, leaves: Sequence[Leaf]) -> None:
    for leaf in leaves:
        name = f"{kind}.{leaf.path}".rstrip(".")
        num_bytes = math.prod(leaf.shape) * np.dtype(leaf.dtype).itemsize
        table.add_row(name, leaf.dtype, str(list(leaf.shape)), str(leaf.frame_stack), _values(leaf), f"{num_bytes:,}")


def _values(leaf: Leaf) -> str:
    if leaf.num_categories:
        return f"{leaf.num_categories:,} categories"
    if leaf.is_action_mask:
        return "action mask"
    return "-1 to 1" if leaf.bounded else "numbers"


def _facts(checked: CheckedEnv) -> list[str]:
    trial = checked.trial
    agents = f" of {trial.num_agents} agents" * (trial.num_agents > 1)
    facts = [f"{trial.steps:,} random steps{agents}, {trial.steps_per_s:,.0f} a second in one process"]
    if trial.given_up:
        facts.append("given up: it failed too often to go on")
    if trial.episodes:
        lengths = [episode.length for episode in trial.episodes]
        terminated = sum(episode.terminated for episode in trial.episodes)
        mean_return = float(np.mean([episode.episode_return for episode in trial.episodes]))
        facts.append(
            f"{len(lengths):,} episode{'s' * (len(lengths) > 1)} of {min(lengths):,} to {max(lengths):,} steps, "
            f"mean {np.mean(lengths):,.1f}; {terminated:,} terminated, {len(lengths) - terminated:,} truncated; "
            f"mean return {mean_return:,.2f}"
        )
    else:
        facts.append("no episode ended: more --steps, or a --time-limit if none ever does")
    if trial.steps:
        plain, compressed = checked.bytes_per_step, checked.compressed_bytes_per_step
        facts.append(f"sent: {plain:,.0f} bytes a step, {compressed:,.0f} where the learner takes them compressed")
    rows = bytes_of_row(trial.observation, trial.action)
    if rows > 1 << 20:
        num_envs = (checked.max_message_mib << 20) // rows
        facts.append(
            f"a message of {checked.max_message_mib} MiB (max_message_mib) has room for {num_envs:,} environments: "
            "a stream can have no more"
        )
    if checked.model:
        facts.append(f"model: {checked.model}; {checked.num_parameters:,} parameters")
    return facts


def _say(console: Console, text: str) -> None:
    console.print(text, soft_wrap=True, highlight=False, markup=False)
