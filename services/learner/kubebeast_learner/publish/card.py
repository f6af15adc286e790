"""The model card: metadata for the Hub, and a page for people.

https://huggingface.co/docs/hub/model-cards#model-card-metadata
"""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files

from huggingface_hub import EvalResult, ModelCard, ModelCardData
from jinja2 import Environment, StrictUndefined

from kubebeast_common.cli.settings import section_from_settings
from kubebeast_common.spec.env_config import format_wrappers
from kubebeast_common.spec.env_spec import describe
from kubebeast_learner import __version__
from kubebeast_learner.config import TasksConfig
from kubebeast_learner.publish.scores import Score
from kubebeast_learner.run.state import Checkpoint
from kubebeast_observe.report.settings import Setting, shown
from kubebeast_runs.names import CONFIG

ORIGINS = {
    "evaluation": "`kubebeast eval` of this checkpoint",
    "training": "newest episodes of the training: sampled actions, and weights that changed meanwhile",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Page:
    """The content of a card beside the checkpoint's."""

    name: str
    """Name of the model."""
    folder: str
    """Name of the folder, for commands."""
    repository: str
    """OWNER/NAME on the Hub; "" if it is not pushed."""
    scores: Sequence[Score]
    settings: Sequence[Setting]
    """Settings that are not the defaults."""
    own_code: Sequence[str]
    """Modules that the checkpoint names."""
    curve: str
    """Name of the picture; "" if there is none."""
    video: str


def make_card(page: Page, checkpoint: Checkpoint) -> ModelCard:
    """Returns the card. Raises ValueError if it has values that the Hub's format does not take."""
    spec = checkpoint.env_spec
    wrappers = spec.env_config.wrappers if spec.env_config is not None else ()
    environment = Environment(
        undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
    )
    environment.filters |= {"code": _code, "shown": shown}
    text = environment.from_string(files(__package__).joinpath("card.jinja").read_text(encoding="utf-8")).render(
        card_data=_metadata(page, checkpoint).to_yaml(),
        name=page.name,
        environment=_code(describe(spec.env_id, spec.env_config)),
        version=__version__,
        step=checkpoint.step,
        scores=page.scores,
        origins=ORIGINS,
        curve=page.curve,
        video=page.video,
        commands=commands(page, checkpoint, has_wrappers=bool(wrappers)),
        own_code=page.own_code,
        wrappers=format_wrappers(wrappers) if wrappers else "",
        folder=page.folder,
        settings=page.settings,
    )
    return ModelCard(text)


def commands(page: Page, checkpoint: Checkpoint, *, has_wrappers: bool) -> list[str]:
    """Returns the commands that download the model, play it, film it, and train it further."""
    tasks = section_from_settings(TasksConfig, checkpoint.config).tasks
    training = f"train --num-servers {len(tasks)}" if tasks else "mono"
    folder = shlex.quote(page.folder)
    model = f"--checkpoint {folder}" + " --trust-checkpoint" * bool(page.own_code) + " --wrappers train" * has_wrappers
    download = [f"hf download {page.repository} --local-dir {folder}"] if page.repository else []
    return [
        *download,
        f"kubebeast eval {model}",
        f"kubebeast render {model} --out episode.gif",
        f"kubebeast {training} --config {folder}/{CONFIG} --init-from {folder} --xpid further",
    ]


def _metadata(page: Page, checkpoint: Checkpoint) -> ModelCardData:
    env_ids = dict.fromkeys([checkpoint.env_spec.env_id, *(score.env_id for score in page.scores)])
    return ModelCardData(
        library_name="kubebeast",
        pipeline_tag="reinforcement-learning",
        tags=["reinforcement-learning", "deep-reinforcement-learning", "impala", "kubebeast", *env_ids],
        model_name=page.name,
        eval_results=[_result(score) for score in page.scores] or None,
    )


def _result(score: Score) -> EvalResult:
    return EvalResult(
        task_type="reinforcement-learning",
        task_name="reinforcement-learning",
        dataset_type=score.env_id,
        dataset_name=score.env_id,
        metric_type="mean_reward",
        metric_name="mean_reward",
        metric_value=f"{score.mean:.2f} +/- {score.std:.2f}",
        metric_args={"episodes": score.num_episodes, "source": score.origin},
        verified=False,
    )


def _code(text: object) -> str:
    """Returns a text as code within a line or a table of Markdown."""
    plain = " ".join(str(text).split()).replace("|", "\\|")
    fence = "``" if "`" in plain else "`"
    return f"{fence} {plain} {fence}" if "`" in plain else f"{fence}{plain}{fence}"
