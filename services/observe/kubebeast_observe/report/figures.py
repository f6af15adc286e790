"""Figures of a report: their curves, titles and hints."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kubebeast_observe.arrays import as_array, column
from kubebeast_observe.numbers import short_text
from kubebeast_observe.report.chart import Chart, Line, make_chart
from kubebeast_observe.report.series import band_of
from kubebeast_runs.log_table import LogTable

LARGE, SMALL = (1040, 290), (340, 170)
MAX_RANKS = 4
"""Maximum number of learners with a line; more are indistinguishable."""
MAX_EVALUATORS = 3
"""The same for evaluators, beside the line of the training."""


@dataclass(frozen=True, slots=True)
class Figure:
    title: str
    columns: dict[str, str]
    """Line names by column of logs.csv; columns that a run does not have are left out."""
    hint: str
    unit_range: bool = False
    """True for shares, drawn from 0 to 1."""
    hides_zeros: bool = True
    """True if a curve of zeros alone shows nothing new."""


@dataclass(frozen=True, slots=True)
class Drawn:
    title: str
    chart: Chart
    hint: str
    legend: Sequence[tuple[str, str]] = ()
    """Name and newest value of each line."""


GROUPS: dict[str, Sequence[Figure]] = {
    "Learning": (
        Figure(
            "Losses",
            {"pg_loss": "policy gradient", "baseline_loss": "baseline", "entropy_loss": "entropy"},
            "Weighted by their costs; their sum is minimized.",
        ),
        Figure(
            "Policy entropy, nats", {"entropy": "entropy"}, "Falls as the policy decides; near 0 it tries nothing new."
        ),
        Figure("Gradient norm", {"grad_norm": "gradient norm"}, "Before clipping."),
        Figure("Learning rate", {"learning_rate": "learning rate"}, "As scheduled."),
        Figure("Episode length, steps", {"mean_episode_step": "mean length"}, "Mean of the newest 100 episodes."),
    ),
    "Speed": (
        Figure("Throughput, steps/s", {"sps": "steps/s"}, "Env-steps trained on, over half a minute."),
        Figure(
            "Waiting and inference load",
            {"starved_ratio": "learner waits", "inference_busy_ratio": "inference busy"},
            "If the learner waits often, add env-servers or use faster inference.",
            unit_range=True,
        ),
        Figure(
            "Rollout queue", {"learner_queue_size": "unrolls"}, "Waiting unrolls; always full if the learner is busy."
        ),
        Figure(
            "Rows per inference", {"rows_per_inference": "rows"}, "Environments that one call of the model acts for."
        ),
        Figure("Environments", {"envs": "environments"}, "Connected at the moment of each row."),
        Figure(
            "Failed episodes",
            {"env_failures": "failures"},
            "Cut short as their environments failed, since the process started; in no mean return.",
        ),
    ),
    "Data": (
        Figure("Policy lag, updates", {"policy_lag": "lag"}, "Mean age of the weights that acted."),
        Figure("Importance weight", {"mean_rho": "mean rho"}, "Far from 1 the data are off-policy."),
        Figure(
            "Clipped importance weights", {"clipped_rho": "share"}, "Share of rho above its threshold.", unit_range=True
        ),
        Figure(
            "Steps dropped",
            {"steps_dropped_partial": "too short", "steps_dropped_stale": "too old"},
            "Since the process started.",
        ),
    ),
}


def return_figure(log: LogTable, scores: Mapping[str, LogTable]) -> Drawn | None:
    """Returns the learning curve, and the curves of at most MAX_EVALUATORS evaluators; None before the first episode
    has finished.

    scores: Scores by the evaluator, "" is the one without a name.
    """
    curves = [("training", as_array(log.steps), column(log, "mean_episode_return"))]
    for name, table in list(scores.items())[:MAX_EVALUATORS]:
        curves.append((f"evaluation {name}".strip(), as_array(table.steps), column(table, "mean_return")))
    lines = [Line(name, steps, returns, is_smooth=True) for name, steps, returns in curves if returns is not None]
    if not lines:
        return None
    band = band_of(as_array(log.steps), log.new_episodes)
    chart = make_chart(lines, size=LARGE, label="Mean episode return against env-steps", band=band)
    hint = "Mean of the newest 100 episodes, against env-steps; rewards are not clipped."
    if band is not None:
        hint += " The band spans the worst and the best episode."
    if lines[-1].name == "training":
        return Drawn("Episode return", chart, hint)
    hint += " Evaluation: mean of the whole episodes that a checkpoint was played for."
    if len(scores) > MAX_EVALUATORS:
        hint += f" {len(scores) - MAX_EVALUATORS} more evaluators have scores."
    legend = [(line.name, short_text(float(line.ys[line.ys == line.ys][-1]))) for line in lines]
    return Drawn("Episode return", chart, hint, legend)


def figures(log: LogTable) -> list[tuple[str, list[Drawn]]]:
    """Returns the groups with any data, in order."""
    chosen = {
        "Tasks": _of_tasks(log),
        "Environment": _of_infos(log),
        "Curriculum": _of_numbers(
            log, "curriculum/", "A number of the curriculum, which chooses the levels of episodes."
        ),
        "League": _of_numbers(
            log,
            "league/",
            "A number of the league: the rating of the policy in Elo, its mean score "
            "against the versions in the league, from 0 to 1, and their number.",
        ),
        **GROUPS,
        "Parts of the loss": _of_parts(log),
        "Learners": _of_ranks(log),
    }
    groups = [(name, [made for one in members if (made := _drawn(one, log))]) for name, members in chosen.items()]
    return [(name, members) for name, members in groups if members]


def _of_tasks(log: LogTable) -> list[Figure]:
    """Returns a figure for each of several tasks, since their returns may differ in magnitude."""
    all_steps = log.steps[-1] if log.steps else 0.0
    steps = {name.partition("/")[2]: log.newest(name) or 0.0 for name in log.columns if name.startswith("step/")}
    return [
        Figure(
            f"Return of {task}",
            {f"mean_episode_return/{task}": "mean return"},
            f"Mean of its newest 100 episodes. {steps[task] / max(all_steps, 1.0):.1%} of all env-steps were its.",
        )
        for task in steps
    ]


def _of_infos(log: LogTable) -> list[Figure]:
    """Returns a figure for each number in the info of episodes."""
    hint = "In the info of the last step of an episode: mean of the newest 100 episodes."
    names = [name for name in log.columns if name.startswith("info/")]
    return [Figure(name.removeprefix("info/"), {name: "mean"}, hint, hides_zeros=False) for name in names]


def _of_numbers(log: LogTable, prefix: str, hint: str) -> list[Figure]:
    """Returns a figure for each column with the prefix."""
    names = [name for name in log.columns if name.startswith(prefix)]
    titles = {name: name.removeprefix(prefix).replace("_", " ") for name in names}
    return [Figure(titles[name], {name: "value"}, hint, hides_zeros=False) for name in names]


def _of_parts(log: LogTable) -> list[Figure]:
    """Returns a figure for each part of a user's loss."""
    hint = "A part of the run's own loss, as it is logged."
    return [
        Figure(name.removeprefix("loss/"), {name: "value"}, hint) for name in log.columns if name.startswith("loss/")
    ]


def _of_ranks(log: LogTable) -> list[Figure]:
    """Returns figures with a line for each of several learners; totals of the run are in the other groups."""
    num_ranks = sum(name.startswith("streams/rank") for name in log.columns)
    ranks = range(min(num_ranks, MAX_RANKS))

    def each(title: str, column: str, hint: str) -> Figure:
        return Figure(title, {f"{column}/rank{rank}": f"rank {rank}" for rank in ranks}, hint)

    return [
        each("Throughput of each learner, steps/s", "sps", "Env-steps of its own batches, over half a minute."),
        each("Streams of each learner", "streams", "Connected at the moment of each row."),
        each("Rollout queue of each learner", "learner_queue_size", "Waiting unrolls; empty if the learner starves."),
        each("Empty shares", "empty_shares", "Updates that it joined without a batch, since its process started."),
    ]


def _drawn(figure: Figure, log: LogTable) -> Drawn | None:
    found = [(key, name, values) for key, name in figure.columns.items() if (values := column(log, key)) is not None]
    if not found or (figure.hides_zeros and all((abs(values) == 0).all() for _, _, values in found)):
        return None
    lines = [Line(name, as_array(log.steps), values) for _, name, values in found]
    legend = [(name, short_text(log.newest(key) or 0.0)) for key, name, _ in found]
    chart = make_chart(lines, size=SMALL, label=f"{figure.title} against env-steps", unit_range=figure.unit_range)
    return Drawn(figure.title, chart, figure.hint, legend)
