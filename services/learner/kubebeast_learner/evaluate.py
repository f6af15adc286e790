"""`kubebeast eval`: plays whole episodes with a checkpoint and states the settings beside the score."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from kubebeast_envserver.envs import EnvironmentFailure, HostedEnv, make_vector_env
from kubebeast_learner.checkpoint import CheckpointError, CheckpointStore, load
from kubebeast_learner.config import ConfigError, EvalConfig, ModelConfig
from kubebeast_learner.config_sources import section_from_settings
from kubebeast_learner.env_spec import EnvSpec
from kubebeast_learner.models import Model, ModelInputs, make_model

MAX_ENVS = 32
"""Episodes played at a time, one in each environment: none is left out for being long."""


@dataclass(frozen=True, slots=True)
class PlayedEpisode:
    episode_return: float
    length: int
    cut_off: bool = False
    """Longer than max_episode_steps: the return up to there."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Evaluation:
    """A score and what it was obtained with."""

    env: str
    preset: str
    repeat_action_probability: float | None
    """Sticky actions; None for environments that are not Atari's, as the two below."""
    noop_max: int | None
    frameskip: int | None
    mode: str
    seed: int
    checkpoint: str
    step: int
    episodes: list[PlayedEpisode]

    @property
    def mean_return(self) -> float:
        return float(np.mean([episode.episode_return for episode in self.episodes]))

    @property
    def std_return(self) -> float:
        """Of the population of played episodes."""
        return float(np.std([episode.episode_return for episode in self.episodes]))


def run(config: EvalConfig) -> int:
    """The command. Returns the exit status; ConfigError when there is nothing that could play."""
    console = Console()
    torch.set_num_threads(1)  # a handful of rows is too little to share; threads would only wait for each other
    try:
        evaluation = evaluate(config)
    except (CheckpointError, EnvironmentFailure) as error:
        Console(stderr=True).print(f"kubebeast eval: {error}", markup=False, soft_wrap=True)
        return 1
    if config.json:
        result = asdict(evaluation)
        print(json.dumps(result | {"mean_return": evaluation.mean_return, "std_return": evaluation.std_return}))
    else:
        print_table(evaluation, console)
    return 0


def evaluate(config: EvalConfig) -> Evaluation:
    """Plays config.episodes episodes on the CPU. Raises ConfigError, CheckpointError or EnvironmentFailure."""
    path, state = find_checkpoint(config)
    trained_on = EnvSpec.from_plain(state["env_spec"])
    env_id = config.env or state["config"].get("env") or trained_on.env_id
    preset = state["config"].get("preset", "auto") if config.preset == "train" else config.preset
    model = make_model(trained_on.observation, trained_on.action, section_from_settings(ModelConfig, state["config"]))
    model.load_state_dict(state["learner"]["model"])
    model.eval()
    generator = torch.Generator().manual_seed(config.seed)

    episodes: list[PlayedEpisode] = []
    while len(episodes) < config.episodes:
        num_envs = min(MAX_ENVS, config.episodes - len(episodes))
        try:
            env = make_vector_env(env_id, num_envs, preset, seed=config.seed + len(episodes), evaluation=True)
        except ValueError as error:
            raise ConfigError(str(error)) from error
        try:
            played_on = EnvSpec.of(env_id, env.spec_observation, env.spec_action)
            if difference := trained_on.difference(played_on):
                raise ConfigError(f"env = {env_id!r}: {path} was trained on another environment: {difference}")
            episodes += play(env, model, config.mode, generator, config.max_episode_steps)
        finally:
            env.close()
    return Evaluation(
        env=env_id,
        **_atari_settings(env_id, preset),
        mode=config.mode,
        seed=config.seed,
        checkpoint=str(path),
        step=state["step"],
        episodes=episodes,
    )


def find_checkpoint(config: EvalConfig) -> tuple[Path, dict[str, Any]]:
    """The named file, or the run's newest readable checkpoint. ConfigError when there is none."""
    if config.checkpoint is not None:
        path = config.checkpoint.expanduser()
        if not path.is_file():
            raise ConfigError(f"checkpoint = {str(path)!r}: there is no such file")
        return path, load(path)
    folder = config.savedir.expanduser() / config.xpid
    found = CheckpointStore(folder, keep=1).load_newest()
    if found is None:
        raise ConfigError(f"xpid = {config.xpid!r}: there is no checkpoint in {folder}")
    return found


@torch.inference_mode()
def play(
    env: HostedEnv,
    model: Model,
    mode: Literal["greedy", "sample"],
    generator: torch.Generator,
    max_episode_steps: int,
) -> list[PlayedEpisode]:
    """One whole episode in each environment of `env`, in their order."""
    played: list[PlayedEpisode | None] = [None] * env.num_envs
    running_return = np.zeros(env.num_envs)
    rows = env.reset()
    last_action = torch.zeros(env.num_envs, dtype=torch.int64)
    core_state = model.initial_state(env.num_envs)
    for _ in range(max_episode_steps):
        is_first = torch.from_numpy(rows.is_first)
        inputs = ModelInputs(
            observation=tuple(torch.from_numpy(np.array(leaf)).unsqueeze(0) for leaf in rows.observation),
            reward=torch.from_numpy(np.array(rows.rewards)).unsqueeze(0),
            last_action=last_action.masked_fill(is_first, 0).unsqueeze(0),
            is_first=is_first.unsqueeze(0),
        )
        output, core_state = model(inputs, core_state)
        last_action = _choose(output.policy_logits[0], mode, generator)
        rows = env.step([_as_leaf(last_action, env.spec_action[0].dtype)])
        running_return += rows.rewards
        for index, episode_return, length in rows.episodes:
            played[index] = played[index] or PlayedEpisode(episode_return, length)
        if all(played):
            break
    return [
        episode or PlayedEpisode(float(running_return[index]), max_episode_steps, cut_off=True)
        for index, episode in enumerate(played)
    ]


def print_table(evaluation: Evaluation, console: Console) -> None:
    """Episodes, mean and standard deviation, and every setting that the score depends on."""
    title = f"{evaluation.env}, checkpoint at step {evaluation.step:,}"
    table = Table("episode", "return", "length", title=title, min_width=len(title))
    for number, episode in enumerate(evaluation.episodes, start=1):
        length = f"{episode.length:,}" + (" (cut off)" if episode.cut_off else "")
        table.add_row(str(number), f"{episode.episode_return:g}", length)
    table.add_section()
    table.add_row("mean ± std", f"{evaluation.mean_return:.2f} ± {evaluation.std_return:.2f}", "")
    console.print(table)
    settings = {"preset": evaluation.preset}
    if evaluation.frameskip is not None:
        settings |= {
            "sticky actions": f"{evaluation.repeat_action_probability:g}",
            "no-ops": f"up to {evaluation.noop_max}",
            "frame skip": str(evaluation.frameskip),
        }
    settings |= {"actions": evaluation.mode, "seed": str(evaluation.seed), "checkpoint": evaluation.checkpoint}
    text = ", ".join(f"{name} {value}" for name, value in settings.items())
    console.print(f"whole episodes, unclipped returns; {text}", soft_wrap=True, highlight=False)


def _choose(policy_logits: torch.Tensor, mode: str, generator: torch.Generator) -> torch.Tensor:
    """int64 [B] from [B, A]."""
    if mode == "greedy":
        return policy_logits.argmax(-1)
    return torch.multinomial(policy_logits.softmax(-1), 1, generator=generator).squeeze(-1)


def _as_leaf(action: torch.Tensor, dtype: str) -> NDArray[Any]:
    return action.numpy().astype(dtype)


def _atari_settings(env_id: str, preset: str) -> Mapping[str, Any]:
    """The resolved preset and, for Atari, what it does that scores depend on."""
    nothing = {"preset": "none", "repeat_action_probability": None, "noop_max": None, "frameskip": None}
    if preset == "none":
        return nothing
    try:
        from kubebeast_envserver import atari
    except ImportError:  # ale-py is an extra
        return nothing
    resolved = atari.find_preset(env_id) if preset == "auto" else preset
    if resolved is None:
        return nothing
    settings = atari.settings_for(resolved, {}, evaluation=True)
    return {"preset": resolved} | {name: getattr(settings, name) for name in nothing if name != "preset"}
