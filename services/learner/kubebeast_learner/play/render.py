"""`kubebeast render`: a video of whole episodes, played as `kubebeast eval` plays them."""

import os
from functools import partial

import torch
from rich.console import Console

from kubebeast_envserver.envs.factory import EnvironmentFailure, RenderedEnv, make_rendered_env
from kubebeast_envserver.rows.advice import collected
from kubebeast_learner.config import RenderConfig
from kubebeast_learner.models import ModelSpecError
from kubebeast_learner.play.playing import PlayedEpisode, choose_env, count_agents, open_env, play
from kubebeast_learner.play.trained_model import load_trained
from kubebeast_learner.play.video import VideoWriter, open_video
from kubebeast_learner.run.checkpoint import CheckpointError


def run(config: RenderConfig) -> int:
    """Runs the command. Returns the exit status. Raises ConfigError if nothing can be played or written."""
    torch.set_num_threads(1)  # one row is too little work for several threads
    os.environ.setdefault("SDL_VIDEODRIVER", "dummy")  # pygame draws into memory, without a display
    try:
        print(render(config))
    except (CheckpointError, EnvironmentFailure, ModelSpecError) as error:
        Console(stderr=True).print(f"kubebeast render: {error}", markup=False, soft_wrap=True)
        return 1
    return 0


def render(config: RenderConfig) -> str:
    """Writes config.out and returns a summary of its content.

    Episode i is played in an environment of its own with the seed config.seed + i, as in eval. Raises ConfigError,
    CheckpointError, EnvironmentFailure or ModelSpecError.
    """
    trained = load_trained(config).playing(config.env)
    played = choose_env(config, trained)
    generator = torch.Generator().manual_seed(config.seed)
    num_agents, notes = count_agents(played)
    statistics = trained.env_statistics or None
    make = partial(make_rendered_env, num_envs=num_agents, evaluation=True, statistics=statistics, **played.arguments)
    out = config.out.expanduser()
    path = out.absolute()  # an environment may change the working directory
    with collected(), open_env(partial(make, seed=config.seed), trained, played.env_id) as env:
        fps = config.fps or env.render_fps
    episodes: list[PlayedEpisode] = []
    with collected() as advice, open_video(path, fps) as video:
        for seed in range(config.seed, config.seed + config.episodes):
            with open_env(partial(make, seed=seed), trained, played.env_id) as env:
                film = partial(_film, env, video)
                episodes += play(
                    env, trained.model, config.mode, generator, config.max_episode_steps, film, trained.task
                )
        if video.num_frames == 0:
            raise EnvironmentFailure(f"render of {played.env_id} returned nothing to show in all episodes")
    games = ", ".join(f"return {episode.episode_return:g}" + " (cut off)" * episode.cut_off for episode in episodes)
    length = f"{video.num_frames:,} frames, {video.num_frames / fps:.1f} s"
    summary = f"{out}: {length}; {played.env_id} at step {trained.step:,}, {games}"
    return "\n".join([summary, *trained.notes, *played.notes, *notes, *advice])


def _film(env: RenderedEnv, video: VideoWriter) -> None:
    for frame in env.render()[:1]:  # only the first of several environments; empty if nothing is drawn yet
        video.add(frame)
