"""The folder of a published model, in the layout of a run."""

import shutil
from pathlib import Path

import yaml

from kubebeast_common.atomic_file import write_atomically
from kubebeast_common.cli.settings import section_from_settings
from kubebeast_common.ids.env_id import parse_env_id
from kubebeast_learner.config import ConfigError, ModelConfig, PublishConfig
from kubebeast_learner.publish.card import Page, make_card
from kubebeast_learner.publish.scores import Score, find_scores
from kubebeast_learner.publish.settings import changed_settings, public_settings
from kubebeast_learner.run import weights_file
from kubebeast_learner.run.initial_weights import FoundState
from kubebeast_learner.run.state import Checkpoint
from kubebeast_observe.plot.curve import read_curve
from kubebeast_observe.plot.figure import draw
from kubebeast_observe.plot.group import Group
from kubebeast_runs.folder import read_meta
from kubebeast_runs.names import CONFIG
from kubebeast_runs.parts import evaluation
from kubebeast_runs.weights import NAME as WEIGHTS

CARD, CURVE, LOG = "README.md", "curve.png", "logs.csv"
VIDEOS = {".mp4": "replay.mp4", ".gif": "replay.gif"}
"""The Hub plays replay.mp4 beside the card of a model: https://huggingface.co/docs/hub/model-cards."""
SCORES = evaluation("").first_file
NAMES = (CARD, WEIGHTS, CONFIG, SCORES, CURVE, *VIDEOS.values())


def write_folder(config: PublishConfig, found: FoundState, out: Path, name: str) -> tuple[list[str], list[Score]]:
    """Writes the files of a model into `out`, in place of those of an earlier one, and returns their names and scores.

    Nothing that a checkpoint names is imported. Raises CheckpointError for a malformed state, ConfigError if a file
    cannot be read or written.
    """
    checkpoint = Checkpoint.of(found.place, found.state)
    if config.video is not None and not config.video.is_file():
        raise ConfigError(f"video = {str(config.video)!r}: there is no such file")
    settings, meta = public_settings(checkpoint), read_meta(found.folder)
    scores = find_scores(checkpoint, found.folder)
    try:
        out.mkdir(parents=True, exist_ok=True)
        for old in NAMES:
            (out / old).unlink(missing_ok=True)
        page = Page(
            name=name,
            folder=(config.to_hub.partition("/")[2] or out.name),
            repository=config.to_hub,
            scores=scores,
            settings=changed_settings(settings, meta),
            own_code=_own_code(checkpoint),
            curve=_draw_curve(found.folder, checkpoint.step, out, name),
            video=_copy_video(config.video, out),
        )
        write_atomically(out / WEIGHTS, weights_file.encode(found.state))
        write_atomically(out / CONFIG, yaml.safe_dump(settings, sort_keys=False).encode())
        if (found.folder / SCORES).is_file():
            shutil.copyfile(found.folder / SCORES, out / SCORES)
        write_atomically(out / CARD, f"{make_card(page, checkpoint)}\n".encode())
    except OSError as error:
        raise ConfigError(f"out = {str(out)!r}: {error}") from error
    return [each for each in NAMES if (out / each).is_file()], scores


def _draw_curve(folder: Path, step: int, out: Path, name: str) -> str:
    """Draws the returns of the run until `step`, and returns the name of the picture; "" if there are none."""
    if not (folder / LOG).is_file():
        return ""
    try:
        curve = read_curve(folder).until(step)
    except ConfigError:  # no row
        return ""
    if not curve.steps.size:
        return ""
    draw([Group(name, [curve])], out / CURVE)
    return CURVE


def _copy_video(video: Path | None, out: Path) -> str:
    if video is None:
        return ""
    name = VIDEOS[video.suffix]
    shutil.copyfile(video, out / name)
    return name


def _own_code(checkpoint: Checkpoint) -> list[str]:
    """Returns the settings that name modules to import, for the page."""
    named = list(section_from_settings(ModelConfig, checkpoint.config).own_code)
    env_id = checkpoint.env_spec.env_id
    parsed = parse_env_id(env_id)
    is_module = bool(parsed.module) or (parsed.kind == "pettingzoo/" and not parsed.namespace)
    return [*named, *([f"env = {env_id!r}"] if is_module else [])]
