"""Description file of an export, for programs without KubeBeast: its tensors, and the environment it plays."""

import json
from typing import Any

from kubebeast_common.spec.env_config import EnvConfig
from kubebeast_common.spec.leaves import Leaf
from kubebeast_envserver.envs.factory import find_action_meanings, find_atari
from kubebeast_learner.config import ConfigError, PlayConfig
from kubebeast_learner.distributions import ActionDistribution
from kubebeast_learner.models import Model
from kubebeast_learner.play.playing import PlayedEnv, choose_env
from kubebeast_learner.play.trained_model import TrainedModel


def describe(trained: TrainedModel) -> dict[str, Any]:
    """Returns plain values: the origin of the model, its environment in full, all inputs and outputs in order."""
    return {
        "env": trained.env_id,
        "step": trained.step,
        "checkpoint": trained.place.rpartition("/")[2],
        "environment": _environment(trained),
        "reward_clipping": trained.settings.get("reward_clipping"),
        "inputs": [
            *map(_observation, trained.env_spec.observation),
            _tensor("reward", "float32", ["B"], "since the row before, not clipped; 0 in the first row of an episode"),
            _last_action(trained.model.distribution),
            _tensor("is_first", "bool", ["B"], "the first row of an episode, which forgets core_state"),
            *_core_state(trained.model),
        ],
        "outputs": outputs(trained.model),
    }


def outputs(model: Model) -> list[dict[str, Any]]:
    """Returns names, dtypes, shapes and meanings, with "B" for the number of environments."""
    distribution = model.distribution
    return [
        _tensor("policy_logits", "float32", ["B", distribution.num_logits], _meaning_of_logits(distribution)),
        _tensor("baseline", "float32", ["B"], "estimated return from here on, of rewards as they were clipped"),
        *_core_state(model),
    ]


def _last_action(distribution: ActionDistribution) -> dict[str, Any]:
    dtype = str(distribution.action_dtype).removeprefix("torch.")
    meaning = "that was chosen in the row before; zeros in the first of an episode"
    if not distribution.is_one_choice:
        meaning += "; the elements of all action leaves in order, categories as whole numbers"
    return _tensor("last_action", dtype, ["B", *distribution.action_shape], meaning)


def _meaning_of_logits(distribution: ActionDistribution) -> str:
    """Returns the way to choose actions from the logits."""
    if distribution.is_one_choice:
        return "one for each action, in the environment's order; the largest is the greedy one's"
    return "for each action leaf in order: " + "; ".join(map(str, distribution.parts))


def _environment(trained: TrainedModel) -> dict[str, Any]:
    """Describes the environment as `kubebeast eval` makes it; None for unknown values."""
    try:
        played = choose_env(PlayConfig(), trained)
    except ConfigError as error:  # ale-py may be missing
        told, atari, action_meanings, notes = trained.env_config, None, None, [str(error)]
    else:
        told, atari, action_meanings, notes = played.config, _atari(played), _action_meanings(played), played.notes
    return {
        "id": trained.env_id,
        "preset": told and told.preset,
        "kwargs": told and dict(told.kwargs),
        "wrappers": told and [wrapper.to_plain() for wrapper in told.wrappers],
        "time_limit": told and told.time_limit,
        "atari": atari,
        "action_meanings": action_meanings,
        "notes": [*notes, *_of_statistics(trained, told)],
    }


def _of_statistics(trained: TrainedModel, told: EnvConfig | None) -> list[str]:
    """Returns a note on wrappers that keep statistics, if there are any."""
    if trained.env_statistics:
        listed = json.dumps([each.to_plain() for each in trained.env_statistics])
        return [f"wrappers had counted this in training, which an actor's environments need as well: {listed}"]
    keepers = [wrapper.name for wrapper in (told.wrappers if told is not None else ()) if wrapper.keeps_statistics]
    return [f"the statistics of {', '.join(keepers)} were not saved: they begin anew"] if keepers else []


def _atari(played: PlayedEnv) -> dict[str, Any] | None:
    game = find_atari(**played.arguments)
    if game is None:
        return None
    settings = game.settings
    return {
        "game": game.game,
        "vector_env": settings.ale_arguments(),
        "frame_stack": settings.frame_stack,
        "fire_after_life": settings.fire_after_life,
        "episodic_life": {"training": settings.episodic_life, "evaluation": False},
    }


def _action_meanings(played: PlayedEnv) -> list[str] | None:
    try:
        return find_action_meanings(**played.arguments)
    except Exception:  # the environment's own code may not run on this machine
        return None


def _observation(leaf: Leaf) -> dict[str, Any]:
    meaning = ""
    if leaf.frame_stack > 1:
        meaning = f"{leaf.frame_stack} frames, oldest first; at the start of an episode, its first frame in all places"
    elif leaf.num_categories > 0:
        meaning = f"categories 0 to {leaf.num_categories - 1}"
    return _tensor(f"observation.{leaf.path}".rstrip("."), leaf.dtype, ["B", *leaf.row_shape], meaning)


def _core_state(model: Model) -> list[dict[str, Any]]:
    return [
        _tensor(
            f"core_state.{index}",
            str(state.dtype).removeprefix("torch."),
            [state.shape[0], "B", *state.shape[2:]],
            "from the step before; anything in the first row of an episode",
        )
        for index, state in enumerate(model.initial_state(1))
    ]


def _tensor(name: str, dtype: str, shape: list[Any], meaning: str) -> dict[str, Any]:
    return {"name": name, "dtype": dtype, "shape": shape, "meaning": meaning}
