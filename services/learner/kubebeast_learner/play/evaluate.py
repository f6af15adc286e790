"""`kubebeast eval`: plays whole episodes with a checkpoint and reports the score with its settings."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from kubebeast_common.process.output import output_to_stderr
from kubebeast_common.spec.env_config import Wrapper, format_wrappers
from kubebeast_common.spec.episode_options import from_text, to_text
from kubebeast_envserver.envs.factory import EnvironmentFailure, find_atari, make_vector_env
from kubebeast_envserver.rows.advice import collected
from kubebeast_envserver.rows.rows import HostedEnv, OptionsError
from kubebeast_learner.config import ConfigError, EvalConfig
from kubebeast_learner.config.episodes.curriculum import read_levels
from kubebeast_learner.models import ModelSpecError
from kubebeast_learner.play.opponents import Opponent, opponents_of
from kubebeast_learner.play.playing import PlayedEnv, PlayedEpisode, choose_env, count_agents, open_env, play
from kubebeast_learner.play.trained_model import TrainedModel, load_trained
from kubebeast_learner.run.checkpoint import CheckpointError

MAX_ENVS = 32
"""Maximum number of episodes at a time, one per environment, so that long episodes are never left out."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Evaluation:
    """A score and the settings of its episodes."""

    env: str
    preset: str
    env_kwargs: Mapping[str, Any]
    """Arguments of the environment, or overrides of the preset."""
    wrappers: Sequence[Any]
    """Wrappers in the order of their application, in the form of Wrapper.to_plain."""
    time_limit: int
    """Steps after which an episode is truncated; 0 for the limit with which the environment is registered."""
    notes: list[str]
    """Differences from the training, and assumptions."""
    repeat_action_probability: float | None
    """Probability of sticky actions; None for environments that are not Atari's, as are the two below."""
    noop_max: int | None
    frameskip: int | None
    mode: str
    seed: int
    checkpoint: str
    step: int
    episodes: list[PlayedEpisode]
    log_info: tuple[str, ...] = ()
    """Keys of the numbers in `info` of each episode."""

    @property
    def mean_return(self) -> float:
        return float(np.mean([episode.episode_return for episode in self.episodes]))

    @property
    def std_return(self) -> float:
        """Standard deviation of the returns, as of a whole population."""
        return float(np.std([episode.episode_return for episode in self.episodes]))

    @property
    def mean_info(self) -> dict[str, float | None]:
        """Mean of each key of log_info over the episodes that have it; None if none has."""
        columns = zip(*(episode.info for episode in self.episodes if episode.info), strict=True)
        found = dict(zip(self.log_info, (list(filter(math.isfinite, column)) for column in columns), strict=False))
        return {key: float(np.mean(found[key])) if found.get(key) else None for key in self.log_info}


def run(config: EvalConfig) -> int:
    """Plays one checkpoint. Returns the exit status. Raises ConfigError if there is nothing to play."""
    console = Console()
    try:
        with output_to_stderr():  # the output of environments is not the result
            evaluation = evaluate(config)
    except (CheckpointError, EnvironmentFailure, ModelSpecError) as error:
        Console(stderr=True).print(f"kubebeast eval: {error}", markup=False, soft_wrap=True)
        return 1
    if config.json:
        print(as_json(evaluation))
    else:
        print_table(evaluation, console)
    return 0


def as_json(evaluation: Evaluation, evaluator: str = "") -> str:
    """Returns one line of JSON with all values, and with the name of the evaluator, if it has one."""
    result = asdict(evaluation)
    for episode in result["episodes"]:
        episode["info"] = [number if math.isfinite(number) else None for number in episode["info"]]
    means = {
        "mean_return": evaluation.mean_return,
        "std_return": evaluation.std_return,
        "mean_info": evaluation.mean_info,
    }
    return json.dumps(result | means | ({"evaluator": evaluator} if evaluator else {}))


def evaluate(config: EvalConfig) -> Evaluation:
    """Plays config.episodes episodes on the CPU with the checkpoint that `config` selects.

    Raises ConfigError, CheckpointError, EnvironmentFailure or ModelSpecError.
    """
    return evaluate_trained(config, load_trained(config))


def evaluate_trained(config: EvalConfig, trained: TrainedModel, watch: Callable[[], None] | None = None) -> Evaluation:
    """Plays config.episodes episodes with a model, or a few more to fill environments of several agents.

    `watch` is as in `play`. Raises ConfigError, EnvironmentFailure or ModelSpecError.
    """
    trained = trained.playing(config.env)
    played = choose_env(config, trained)
    num_agents, notes = count_agents(played)
    if config.against:
        if num_agents < 2:
            raise ConfigError(f"against = {config.against!r}: {played.env_id} has only one agent")
        notes = [f"the checkpoint plays one of {num_agents} agents, another one in each environment"]
    with collected() as advice:
        episodes = [
            episode
            for opponent in opponents_of(config, trained)
            for episode in _play_all(config, trained, played, num_agents, opponent, watch)
        ]
    return Evaluation(
        env=played.env_id,
        preset=played.config.preset,
        env_kwargs=played.config.kwargs,
        wrappers=[wrapper.to_plain() for wrapper in played.config.wrappers],
        time_limit=played.config.time_limit,
        notes=[*trained.notes, *played.notes, *notes, *advice],
        **_atari_settings(played),
        mode=config.mode,
        seed=config.seed,
        checkpoint=trained.place,
        step=trained.step,
        episodes=episodes,
        log_info=trained.log_info,
    )


def _play_all(
    config: EvalConfig,
    trained: TrainedModel,
    played: PlayedEnv,
    num_agents: int,
    opponent: Opponent,
    watch: Callable[[], None] | None,
) -> list[PlayedEpisode]:
    generator = torch.Generator().manual_seed(config.seed)
    statistics = trained.env_statistics or None
    episodes: list[PlayedEpisode] = []
    levels = [to_text(level) for level in read_levels(config.levels)]
    while len(episodes) < config.episodes:
        num_counted = 1 if opponent.make else num_agents  # of the agents of an environment
        num_envs = num_agents * -(-min(MAX_ENVS, config.episodes - len(episodes)) // num_counted)
        seed = config.seed + len(episodes)
        make = partial(
            make_vector_env, num_envs=num_envs, seed=seed, evaluation=True, statistics=statistics, **played.arguments
        )
        with open_env(make, trained, played.env_id) as env:
            chosen = [levels[(len(episodes) + place) % len(levels)] for place in range(num_envs)] if levels else []
            _set_levels(env, chosen)
            found = play(
                env,
                trained.model,
                config.mode,
                generator,
                config.max_episode_steps,
                watch,
                trained.task,
                trained.log_info,
                None if opponent.make is None else opponent.make(env, seed),
            )
        found = [replace(episode, opponent=opponent.name) for episode in found] if opponent.name else found
        episodes += [replace(each, level=level) for each, level in zip(found, chosen, strict=True)] if chosen else found
    return episodes


def _set_levels(env: HostedEnv, levels: Sequence[str]) -> None:
    """Sets the level of each environment, if there are any. Raises ConfigError if the environments take none."""
    if levels:
        try:
            env.set_options({place: from_text(level) for place, level in enumerate(levels)})
        except OptionsError as error:
            raise ConfigError(f"levels: {error}") from error


def print_table(evaluation: Evaluation, console: Console) -> None:
    """Prints episodes, mean and standard deviation, and every setting that affects the score."""
    title = f"{evaluation.env}, checkpoint at step {evaluation.step:,}"
    keys = [escape(f"info/{key}") for key in evaluation.log_info]
    level = ["level"] * any(episode.level for episode in evaluation.episodes)
    against = ["opponent"] * any(episode.opponent for episode in evaluation.episodes)
    table = Table("episode", *level, *against, "return", "length", *keys, title=title, min_width=len(title))
    for number, episode in enumerate(evaluation.episodes, start=1):
        length = f"{episode.length:,}" + (" (cut off)" if episode.cut_off else "")
        numbers = ["-" if math.isnan(number) else f"{number:g}" for number in episode.info]
        played = [escape(episode.level)] * len(level)
        played += [escape(episode.opponent)] * len(against)
        table.add_row(str(number), *played, f"{episode.episode_return:g}", length, *numbers)
    table.add_section()
    means = ["-" if mean is None else f"{mean:.4g}" for mean in evaluation.mean_info.values()]
    score = f"{evaluation.mean_return:.2f} ± {evaluation.std_return:.2f}"
    table.add_row("mean ± std", *[""] * (len(level) + len(against)), score, "", *means)
    console.print(table)
    if against:
        console.print(_table_of_opponents(evaluation))
    settings = {"preset": evaluation.preset}
    if evaluation.env_kwargs:
        settings["env_kwargs"] = json.dumps(evaluation.env_kwargs)
    if evaluation.wrappers:
        settings["wrappers"] = format_wrappers([Wrapper.from_plain(entry) for entry in evaluation.wrappers])
    if evaluation.time_limit:
        settings["time limit"] = str(evaluation.time_limit)
    if evaluation.frameskip is not None:
        settings |= {
            "sticky actions": f"{evaluation.repeat_action_probability:g}",
            "no-ops": f"up to {evaluation.noop_max}",
            "frame skip": str(evaluation.frameskip),
        }
    settings |= {"actions": evaluation.mode, "seed": str(evaluation.seed), "checkpoint": evaluation.checkpoint}
    text = ", ".join(f"{name} {value}" for name, value in settings.items())
    for line in (f"whole episodes, unclipped returns; {text}", *evaluation.notes):
        console.print(line, soft_wrap=True, highlight=False, markup=False)


def _table_of_opponents(evaluation: Evaluation) -> Table:
    """Returns a table with the results against each opponent. A return above 0 is a win, one below 0 a loss."""
    table = Table("opponent", "episodes", "won", "drawn", "lost", "mean return")
    for name in dict.fromkeys(episode.opponent for episode in evaluation.episodes):
        returns = np.array([each.episode_return for each in evaluation.episodes if each.opponent == name])
        results = (returns > 0).mean(), (returns == 0).mean(), (returns < 0).mean()
        table.add_row(escape(name), str(len(returns)), *(f"{share:.1%}" for share in results), f"{returns.mean():.3f}")
    return table


def _atari_settings(played: PlayedEnv) -> Mapping[str, Any]:
    """Returns the settings of an Atari preset that affect scores; None for other environments."""
    atari = find_atari(**played.arguments, evaluation=True)
    settings = None if atari is None else atari.settings
    return {name: getattr(settings, name, None) for name in ("repeat_action_probability", "noop_max", "frameskip")}
