"""`kubebeast eval`: plays whole episodes with a checkpoint and states the settings beside the score."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

from kubebeast_envserver.envs import EnvironmentFailure, make_vector_env
from kubebeast_learner.checkpoint import CheckpointError
from kubebeast_learner.config import EvalConfig
from kubebeast_learner.playing import PlayedEpisode, choose_env, open_env, play
from kubebeast_learner.trained import load_trained

MAX_ENVS = 32
"""Episodes played at a time, one in each environment: none is left out for being long."""


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
    trained = load_trained(config)
    env_id, preset = choose_env(config, trained)
    generator = torch.Generator().manual_seed(config.seed)

    episodes: list[PlayedEpisode] = []
    while len(episodes) < config.episodes:
        num_envs = min(MAX_ENVS, config.episodes - len(episodes))
        make = partial(make_vector_env, env_id, num_envs, preset, seed=config.seed + len(episodes), evaluation=True)
        with open_env(make, trained, env_id) as env:
            episodes += play(env, trained.model, config.mode, generator, config.max_episode_steps)
    return Evaluation(
        env=env_id,
        **_atari_settings(env_id, preset),
        mode=config.mode,
        seed=config.seed,
        checkpoint=str(trained.path),
        step=trained.step,
        episodes=episodes,
    )


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
