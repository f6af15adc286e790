"""The curriculum that the settings name."""

from collections.abc import Callable, Sequence

from kubebeast_learner.config import ConfigError, CurriculumConfig
from kubebeast_learner.config.checks import parse_object
from kubebeast_learner.config.episodes.curriculum import read_levels
from kubebeast_learner.config.plugins import check_options, describe, load_object
from kubebeast_learner.curriculum.base import CurriculumError
from kubebeast_learner.curriculum.levels import Levels
from kubebeast_learner.curriculum.progress import Progress
from kubebeast_learner.curriculum.success import Success
from kubebeast_learner.curriculum.uniform import Uniform

CURRICULA = {"uniform": Uniform, "success": Success, "progress": Progress}
REQUIRED = ("next_level", "on_episode")


def load_levels(config: CurriculumConfig, log_info: Sequence[str]) -> Callable[[int], Levels | None]:
    """Imports the class, reads its levels, and returns a function from a seed to the levels of a run; None without any.

    Both raise ConfigError: this one if a file or a class cannot be used, or does not take its options, and that
    function if the class cannot be constructed, lacks a method, or has a state that no checkpoint holds.
    """
    name = config.curriculum
    if not name:
        return lambda seed: None
    make = CURRICULA[name] if name in CURRICULA else load_object("curriculum", name)
    if not callable(make):
        raise ConfigError(f"curriculum = {name!r}: must be a class, it is {make!r}")
    listed = read_levels(config.levels)
    options = parse_object("curriculum_options", config.curriculum_options)
    check_options("curriculum_options", config.curriculum_options, make, 2, options)

    def levels(seed: int) -> Levels:
        try:
            curriculum = make(listed, seed, **options)
        except Exception as error:  # the user's code may raise anything
            raise ConfigError(f"curriculum = {name!r}: cannot be made: {describe(error)}") from error
        if missing := [method for method in REQUIRED if not callable(getattr(curriculum, method, None))]:
            raise ConfigError(f"curriculum = {name!r}: it lacks {' and '.join(missing)}")
        made = Levels(name, curriculum, log_info)
        try:
            made.state_dict()
        except CurriculumError as error:  # better now than at the first checkpoint, with hours of training to lose
            raise ConfigError(str(error)) from error
        return made

    return levels
