"""Settings of a curriculum, which chooses the level of each episode."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kubebeast_common.spec import episode_options, peer_json
from kubebeast_learner.config.checks import ConfigError, JsonObject, parse_object, require
from kubebeast_learner.config.episodes.tasks import TasksConfig

BUILT_IN = ("uniform", "success", "progress")
"""Curricula of this package, which choose from the setting levels."""
MAX_LEVELS = 65_536
"""Most levels of the setting: a curriculum keeps the results of each, also in checkpoints."""
LINES_SUFFIX = ".jsonl"
"""End of the names of files with a level in each line, even if there is only one, which could be read otherwise."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CurriculumConfig:
    """Levels of a training: the options with which its environments are reset."""

    curriculum: str = ""
    """Choice of the level of each episode, the options of its reset: uniform; success, levels that are solved now and
    then; progress, levels whose returns change; or module:Class of your own. Empty: resets have no options."""
    curriculum_options: JsonObject = "{}"
    """JSON object: arguments of the curriculum, by name."""
    levels: str = ""
    """Levels that the curriculum chooses from: a list of JSON objects; or an object of lists, each combination of which
    is a level, e.g. '{"size": [5, 7], "seed": [1, 2, 3]}'; or another object, one level; or a file with one of these,
    or with a level in each line, as every file that is named .jsonl has."""

    def __post_init__(self) -> None:
        is_known = self.curriculum in ("", *BUILT_IN) or ":" in self.curriculum
        require(is_known, "curriculum", self.curriculum, f"must be {', '.join(BUILT_IN)} or module:Class")
        options = parse_object("curriculum_options", self.curriculum_options)
        require(not options or self.curriculum != "", "curriculum_options", self.curriculum_options, "needs curriculum")
        require(not self.levels or self.curriculum != "", "levels", self.levels, "needs curriculum")
        has_levels = self.curriculum not in BUILT_IN or self.levels != ""
        require(has_levels, "curriculum", self.curriculum, "needs levels")
        if is_json(self.levels):
            parse_levels(self.levels)

    def require_fit(self, tasks: TasksConfig, *, lag: int | None = None, from_recording: Path | None = None) -> None:
        """Raises ConfigError if there is a curriculum, and the training has several tasks, a lag or no environments."""
        if self.curriculum:
            reason = "a level is for one task, and task_shares has several"
            require(not tasks.task_shares, "curriculum", self.curriculum, reason)
            reason = "the order of its episodes is not repeatable, as a lag requires"
            require(lag is None, "curriculum", self.curriculum, reason)
            require(from_recording is None, "curriculum", self.curriculum, "from_recording plays no environments")


def is_json(levels: str) -> bool:
    """Returns True if a setting levels is JSON itself, not a file."""
    return levels.lstrip().startswith(("[", "{"))


def read_levels(levels: str) -> list[dict[str, Any]]:
    """Returns the levels of the setting, in order, each once; none for "". Raises ConfigError for an unusable file or
    level.
    """
    if not levels or is_json(levels):
        return parse_levels(levels) if levels else []
    try:
        text = Path(levels).expanduser().read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise ConfigError(f"levels = {levels!r}: {error}") from error
    return parse_levels(text, levels)


def parse_levels(text: str, file: str = "") -> list[dict[str, Any]]:
    """Parses levels in any of their forms. `file` is the path of the text, if that is not the setting itself.

    Raises ConfigError, which names the level.
    """
    value = file or text
    levels: dict[str, dict[str, Any]] = {}
    try:
        for number, level in enumerate(_by_line(text) if file.endswith(LINES_SUFFIX) else _plain_levels(text), 1):
            require(number <= MAX_LEVELS, "levels", value, f"must be at most {MAX_LEVELS}")
            try:
                levels[episode_options.to_text(level)] = level
            except ValueError as error:
                raise ConfigError(f"levels = {value!r:.200}: level {number}: {error}") from error
    except ValueError as error:
        raise ConfigError(f"levels = {value!r:.200}: {error}") from error
    require(bool(levels), "levels", value, "has no level")
    return list(levels.values())


def _plain_levels(text: str) -> Iterator[Any]:
    """Yields the levels, unchecked. Raises ValueError if the text is in none of the forms."""
    try:
        whole = peer_json.load(text)
    except ValueError as error:
        if sum(bool(line.strip()) for line in text.splitlines()) < 2:
            raise ValueError(f"is no JSON: {error}") from error
        yield from _by_line(text)
        return
    if isinstance(whole, list):
        yield from whole
    elif not isinstance(whole, dict):
        raise ValueError('must be a list of objects, an object of lists such as {"size": [5, 7]}, or another object')
    elif all(isinstance(values, list) for values in whole.values()):
        if not all(whole.values()):
            raise ValueError("has no combination, as a list of the object is empty; one level of lists is [{...}]")
        for values in itertools.product(*whole.values()):
            yield dict(zip(whole, values, strict=True))
    else:
        yield whole


def _by_line(text: str) -> Iterator[Any]:
    """Yields the levels of a text with one in each line, unchecked. Raises ValueError for a line that is no JSON."""
    yield from (peer_json.load(line) for line in text.splitlines() if line.strip())
