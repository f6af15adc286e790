"""Sources of a training's settings: defaults < recipe < YAML file < KUBEBEAST_* environment < flags."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from kubebeast_common.cli.settings import setting_fields, setting_types
from kubebeast_common.cli.sources import LayeredFlags, environment_settings, join_sources, named_by, scan
from kubebeast_common.settings import read_file
from kubebeast_learner.config import LocalFleetConfig, TasksConfig, TrainingConfig
from kubebeast_learner.config.recipes import AUTO, RecipeChoice, choose_recipe, is_left_to_kind, settings_beside


def layer_flags(config_type: type, user_flags: Sequence[str], environ: Mapping[str, str]) -> LayeredFlags:
    """Puts the settings of all sources before `user_flags`, which stay unchanged.

    Raises ConfigError with the setting, its value and its source if a file or a variable cannot be used.
    """
    chosen = scan(user_flags, "config", "recipe", "env", "task-shares", "num-learners", "model", "loss")
    types = setting_types(config_type)
    from_file = read_file(Path(chosen.config).expanduser(), types) if chosen.config else {}
    from_environment = environment_settings(config_type, environ)

    def first(name: str) -> str:
        """Returns the user's value of a setting, or ""."""
        return str(getattr(chosen, name) or from_environment.get(name) or from_file.get(name) or "")

    default_env = next((field.default for field in setting_fields(config_type) if field.name == "env"), "")
    tasks = TasksConfig(task_shares=first("task_shares") if "task_shares" in types else "").tasks
    from_tasks: dict[str, object] = {"env": tasks[0]} if tasks and not first("env") else {}
    env_id = first("env") or from_tasks.get("env") or default_env
    wanted = (chosen.recipe or AUTO, str(env_id))
    recipe = choose_recipe(*wanted)
    settings = settings_beside(recipe, first("model"), first("loss")) if recipe else {}
    from_recipe = {name: value for name, value in settings.items() if name in types}
    is_open = is_left_to_kind(*wanted)
    usual = 1 if is_open else from_recipe.get("num_servers", LocalFleetConfig().num_servers)
    from_number = _servers_for(first("num_learners"), len(tasks), usual) if "num_servers" in types else {}

    sources: dict[str, Mapping[str, object]] = {
        "task_shares": from_tasks,
        f"recipe {recipe.name}" if recipe else "": from_recipe,
        "num_learners and task_shares": from_number,
        f"file {chosen.config}": from_file,
        "environment": from_environment,
    }
    layered = join_sources(config_type, sources, user_flags)
    if not issubclass(config_type, TrainingConfig):
        return layered
    named = {*from_number, *from_file, *from_environment, *named_by(user_flags)}
    choice = RecipeChoice(recipe.name if recipe else "", frozenset(named) if is_open else None)
    return replace(layered, hidden={"recipe": choice})


def _servers_for(num_learners: str, num_tasks: int, usual: object) -> dict[str, object]:
    """Returns num_servers, one for each task of each learner, if the usual number is smaller."""
    least = max(1, num_tasks) * (int(num_learners) if num_learners.isdecimal() else 1)
    return {"num_servers": least} if isinstance(usual, int) and least > usual else {}
