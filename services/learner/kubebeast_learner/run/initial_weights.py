"""Weights of an earlier run that a new run begins with."""

import logging
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from torch import Tensor, nn

from kubebeast_learner.config import ConfigError
from kubebeast_learner.models.finite import first_not_finite, names_of_not_finite
from kubebeast_learner.models.scales.moments import RunningMoments
from kubebeast_learner.run.checkpoint import CheckpointReader
from kubebeast_learner.run.checkpoint_file import load, load_path
from kubebeast_learner.run.state import Checkpoint
from kubebeast_runs.checkpoints import list_checkpoints
from kubebeast_runs.folder import find_run
from kubebeast_runs.home import evaluations_in
from kubebeast_runs.scores import ScoreError
from kubebeast_runs.storage.local import LocalStorage
from kubebeast_runs.weights import NAME

logger = logging.getLogger(__name__)

SETTING = "init_from"
_MOST_ROWS = 256
"""Weight of taken statistics, in rows. They normalize the first rows as the earlier weights expect. With all rows of
the earlier run, they would describe its environment for as long as it was trained.
"""
_FILES = ("meta.json", NAME)
"""Files of which the folder of a run has one."""
_CHOICE = re.compile(r"(?P<run>.+)@((?P<step>\d+)|best(:(?P<evaluator>.+))?)", re.ASCII)
"""A run with the choice of one of its checkpoints."""


class FoundState(NamedTuple):
    """The state of a checkpoint that a user has named."""

    place: str
    folder: Path
    """Folder of the run or, if it is of a file, that of the file."""
    state: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class InitialWeights:
    """Weights of an earlier run, and the statistics of its normalizations, which are buffers of its model."""

    place: str
    step: int
    """Env-steps of the earlier training."""
    tensors: Mapping[str, Tensor]
    """The state of its model."""


@dataclass(frozen=True, slots=True)
class TakenLayer:
    """A layer of a new model, and the origin of its weights."""

    name: str
    shapes: str
    """Shapes of its tensors."""
    reason: str = ""
    """Reason for new weights; empty for those of the earlier run."""


def read_initial(source: str, savedir: str) -> InitialWeights:
    """Reads the weights of a file, or of a checkpoint of a run. Arguments and errors are those of `find_state`."""
    found = find_state(SETTING, source, savedir)
    checkpoint = Checkpoint.of(found.place, found.state)
    tensors: Mapping[str, Tensor] = checkpoint.learner["model"]
    return InitialWeights(found.place, checkpoint.step, tensors)


def find_state(setting: str, source: str, savedir: str) -> FoundState:
    """Reads a file, or a checkpoint of a run.

    Args:
        setting: the setting that names the source, for errors.
        source: path of a checkpoint or weights file; or name or path of a run, with @step for an older checkpoint,
            @best for the best one, or @best:NAME for the best one by the evaluator NAME. A folder with weights and no
            checkpoints is one of `kubebeast publish`.
        savedir: folder or URL of all runs.

    Raises:
        ConfigError: If there is no such run, step or file.
        CheckpointError: If the checkpoint cannot be read.
    """
    path = Path(source).expanduser()
    try:
        if path.is_file():
            return FoundState(str(path), path.absolute().parent, load_path(path))
        return _of_run(setting, source, savedir)
    except OSError as error:
        raise ConfigError(f"{setting} = {source!r}: its checkpoints cannot be read: {error}") from error


def take_weights(model: nn.Module, initial: InitialWeights) -> list[TakenLayer]:
    """Copies each layer that both models have with equal shapes into `model`, and returns all layers of it in order.

    The tensors of a layer belong together, such as a mean and its variance: it takes all of them, or none.

    Raises ConfigError if no layer fits, or if one that does is not finite.
    """
    taken: dict[str, Tensor] = {}
    rows: list[TakenLayer] = []
    for layer, tensors in _layers(model.state_dict()):
        same = {name: initial.tensors[name] for name in tensors if name in initial.tensors}
        reason = _difference(tensors, same)
        rows.append(TakenLayer(layer, _shapes(tensors), reason))
        taken |= {} if reason else same
    if not taken:
        raise ConfigError(f"{SETTING}: no layer of {initial.place} fits the model: {rows[0].name}: {rows[0].reason}")
    if found := first_not_finite(taken.items(), names_of_not_finite(model.state_dict().items())):
        raise ConfigError(f"{SETTING}: {initial.place}: {found}")
    model.load_state_dict({**model.state_dict(), **taken})
    for module in model.modules():
        if isinstance(module, RunningMoments):
            module.limit_count(_MOST_ROWS)
    return rows


def table_of(rows: list[TakenLayer]) -> str:
    """Returns a line for each layer, in columns."""
    name, shapes = (max(map(len, column)) for column in zip(*((row.name, row.shapes) for row in rows), strict=True))
    return "\n".join(f"  {row.name:{name}}  {row.shapes:{shapes}}  {row.reason or 'taken'}" for row in rows)


def _of_run(setting: str, source: str, savedir: str) -> FoundState:
    """Raises ConfigError if there is no such run or checkpoint, and OSError if its folder cannot be read."""
    chosen = _CHOICE.fullmatch(source)
    name = chosen["run"] if chosen else source
    folder = find_run(setting, name, savedir, _FILES, with_checkpoints=True)
    if chosen and chosen["step"]:
        return _of_step(setting, source, folder, int(chosen["step"]))
    if chosen:
        return _best_of(setting, source, folder, chosen["evaluator"] or "")
    newest = CheckpointReader(LocalStorage(folder)).load_newest()
    if newest is not None:
        return FoundState(newest[0], folder, newest[1])
    if (folder / NAME).is_file():
        return FoundState(str(folder / NAME), folder, load_path(folder / NAME))
    raise ConfigError(f"{setting} = {source!r}: there is no checkpoint in {folder}")


def _of_step(setting: str, source: str, folder: Path, step: int) -> FoundState:
    """Raises ConfigError if there is no checkpoint of this step."""
    storage = LocalStorage(folder)
    files = {saved.step: saved.file.name for saved in reversed(list_checkpoints(storage))}
    if step not in files:
        known = ", ".join(map(str, files)) or "none"
        raise ConfigError(f"{setting} = {source!r}: {folder} has no checkpoint of step {step}, it has: {known}")
    return FoundState(storage.place(files[step]), folder, load(storage, files[step]))


def _best_of(setting: str, source: str, folder: Path, evaluator: str) -> FoundState:
    """Raises ConfigError if no checkpoint has a score, or if there is no such evaluator."""
    try:
        best, place, state = CheckpointReader(LocalStorage(folder)).load_best(evaluations_in(folder), evaluator)
    except ScoreError as error:
        raise ConfigError(f"{setting} = {source!r}: {error}") from error
    logger.info("%s names %s", source, best)
    return FoundState(place, folder, state)


def _layers(state: Mapping[str, Tensor]) -> Iterator[tuple[str, dict[str, Tensor]]]:
    """Yields the name and the tensors of each module with tensors of its own."""
    layers: dict[str, dict[str, Tensor]] = {}
    for name, tensor in state.items():
        layers.setdefault(name.rpartition(".")[0], {})[name] = tensor
    yield from layers.items()


def _difference(wanted: Mapping[str, Tensor], found: Mapping[str, Tensor]) -> str:
    """Returns the reason why `found` cannot take the place of `wanted`; "" if it can."""
    if missing := [name for name in wanted if name not in found]:
        return f"new: the earlier model has no {missing[0]}"
    for name, tensor in wanted.items():
        if found[name].shape != tensor.shape:
            return f"new: {list(found[name].shape)} in the earlier model"
        if found[name].dtype.is_floating_point != tensor.dtype.is_floating_point:
            return f"new: {found[name].dtype} in the earlier model"
    return ""


def _shapes(tensors: Mapping[str, Tensor]) -> str:
    return " ".join(str(list(tensor.shape)).replace(" ", "") for tensor in tensors.values())
