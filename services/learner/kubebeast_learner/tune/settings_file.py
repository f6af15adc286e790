"""The chosen settings as a file for `kubebeast train --config`, each with its reason."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from kubebeast_common.cli.settings import as_settings, setting_types
from kubebeast_learner.config import TrainConfig
from kubebeast_learner.config.recipes import AUTO, OPEN_SETTINGS, choose_recipe, is_left_to_kind
from kubebeast_learner.tune.choice import MAX_BATCHES_IN_FLIGHT, Expected
from kubebeast_learner.tune.pieces import Pieces


@dataclass(frozen=True, slots=True)
class Setting:
    name: str
    value: Any
    reason: str


def chosen_settings(best: Expected, pieces: Pieces, config: TrainConfig) -> list[Setting]:
    """Returns the chosen settings with their reasons as sentences."""
    choice, rows = best.choice, config.pool.max_inference_rows
    num_envs = choice.num_actors // choice.num_servers
    server = pieces.env_server(num_envs)
    beside_us = max(0.0, server.process_cpu_s - server.env_step_s) * 1e6
    slowest = f"{best.saturates} {'saturate' if best.saturates == 'environments' else 'saturates'} first"
    return [
        Setting(
            "num_servers",
            choice.num_servers,
            f"env-server processes on {pieces.cores} cores: a step takes {server.env_step_s * 1e6:,.0f} us in env.step "
            f"and {beside_us:,.0f} us of CPU beside it; {slowest}",
        ),
        Setting(
            "num_actors",
            choice.num_actors,
            f"environments, {num_envs} a process: a message costs the same however many it carries; at most "
            f"{MAX_BATCHES_IN_FLIGHT} training batches are on their way",
        ),
        Setting("learner_threads", choice.learner_threads, _reason_of_threads(best, pieces)),
        Setting("precision", choice.precision, _reason_of_precision(best, pieces)),
        Setting("device", choice.device, _reason_of_device(pieces)),
        Setting(
            "max_inference_rows",
            max(rows, 1 << (choice.num_actors - 1).bit_length()),
            "every environment fits into one inference batch",
        ),
        Setting(
            "min_inference_rows",
            1,
            f"no row waits for others: {best.inference_rows:.0f} arrive while the model runs for those before them",
        ),
    ]


def render(settings: list[Setting], config: TrainConfig, heading: str) -> str:
    """Renders the chosen settings below their reasons, then those of the user, as YAML.

    With it, `kubebeast train --config` runs the training of the user's settings, except for the chosen ones.
    """
    lines = [f"# {line}" for line in heading.splitlines()]
    for each in settings:
        lines += [f"# {each.reason}", _line(each.name, each.value)]
    chosen = {each.name for each in settings}
    given = {name: value for name, value in _given(config).items() if name not in chosen}
    lines += ["# requested settings", *(_line(name, value) for name, value in given.items())]
    return "\n".join(lines) + "\n"


def _given(config: TrainConfig) -> Mapping[str, Any]:
    """Returns the settings of `config` that differ from those of `kubebeast train` with --env alone, and those that it
    would leave to the kind of the environment.
    """
    env, names = config.fleet.env, setting_types(TrainConfig)
    usual, settings = as_settings(TrainConfig()), as_settings(config)
    recipe = choose_recipe(AUTO, env)
    for name, value in recipe.settings.items() if recipe else ():
        usual[name] = list(value) if isinstance(value, tuple) else value
    is_open = OPEN_SETTINGS if is_left_to_kind(AUTO, env) else frozenset()
    return {"env": env} | {name: settings[name] for name in names if settings[name] != usual[name] or name in is_open}


def _line(name: str, value: Any) -> str:
    return yaml.safe_dump({name: value}, default_flow_style=False, width=10**6).rstrip("\n")


def _reason_of_threads(best: Expected, pieces: Pieces) -> str:
    choice = best.choice
    walls = {
        cost.threads: cost.update.wall_s * 1e3
        for cost in pieces.learners
        if (cost.device, cost.precision) == (choice.device, choice.precision)
    }
    listed = ", ".join(f"{wall:.1f} ms with {threads}" for threads, wall in sorted(walls.items()))
    return f"an update takes {listed}; the other cores are for environments and inference"


def _reason_of_precision(best: Expected, pieces: Pieces) -> str:
    choice = best.choice
    walls = {
        cost.precision: cost.update.wall_s * 1e3
        for cost in pieces.learners
        if (cost.device, cost.threads) == (choice.device, choice.learner_threads)
    }
    if len(walls) == 1:
        return "nothing else comes into question: it was asked for, or the network computes in float32 only"
    return f"an update takes {', '.join(f'{wall:.1f} ms in {name}' for name, wall in walls.items())}"


def _reason_of_device(pieces: Pieces) -> str:
    fastest: dict[str, float] = {}
    for cost in pieces.learners:
        wall_ms = cost.update.wall_s * 1e3
        fastest[cost.device] = min(wall_ms, fastest.get(cost.device, wall_ms))
    if len(fastest) == 1:
        return "nothing else is here, or it was asked for"
    return f"an update takes {', '.join(f'{wall:.1f} ms on {name}' for name, wall in fastest.items())}"
