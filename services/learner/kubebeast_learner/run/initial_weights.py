"""Weights of an earlier run that a new run begins with."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from kubebeast_learner.config import ConfigError
from kubebeast_learner.models.finite import first_not_finite, names_of_not_finite
from kubebeast_learner.run.checkpoint import CheckpointStore
from kubebeast_learner.run.checkpoint_file import load, load_path
from kubebeast_learner.run.state import Checkpoint
from kubebeast_runs.checkpoints import list_checkpoints
from kubebeast_runs.folder import find_run
from kubebeast_runs.storage.choice import storage_of
from kubebeast_runs.weights import NAME

SETTING = "init_from"
_FILES = ("meta.json", NAME)
"""Files of which the folder of a run has one."""


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


def read_initial(source: str, savedir: Path) -> InitialWeights:
    """Reads the weights of a file, or of a checkpoint of a run.

    Args:
        source: path of a checkpoint or weights file; or name or path of a run, with @step for an older checkpoint.
        savedir: folder of all runs.

    Raises:
        ConfigError: If there is no such run, step or file.
        CheckpointError: If the checkpoint cannot be read.
    """
    path = Path(source).expanduser()
    try:
        if path.is_file():
            return _initial(str(path), load_path(path))
        return _of_run(source, savedir)
    except OSError as error:
        raise ConfigError(f"{SETTING} = {source!r}: its checkpoints cannot be read: {error}") from error


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
    return rows


def table_of(rows: list[TakenLayer]) -> str:
    """Returns a line for each layer, in columns."""
    name, shapes = (max(map(len, column)) for column in zip(*((row.name, row.shapes) for row in rows), strict=True))
    return "\n".join(f"  {row.name:{name}}  {row.shapes:{shapes}}  {row.reason or 'taken'}" for row in rows)


def _of_run(source: str, savedir: Path) -> InitialWeights:
    """Raises ConfigError if there is no such run or step, and OSError if its folder cannot be read."""
    name, at, step = source.rpartition("@")
    has_step = bool(at) and step.isdecimal()
    folder = find_run(SETTING, name if has_step else source, savedir, _FILES)
    storage = storage_of(folder)
    if not has_step:
        newest = CheckpointStore(storage, keep=1).load_newest()
        if newest is None:
            raise ConfigError(f"{SETTING} = {source!r}: there is no checkpoint in {folder}")
        return _initial(*newest)
    files = {saved.step: saved.file.name for saved in reversed(list_checkpoints(storage))}
    if int(step) not in files:
        known = ", ".join(map(str, files)) or "none"
        raise ConfigError(f"{SETTING} = {source!r}: {folder} has no checkpoint of step {step}, it has: {known}")
    file = files[int(step)]
    return _initial(storage.place(file), load(storage, file))


def _initial(place: str, state: Mapping[str, Any]) -> InitialWeights:
    """Raises CheckpointError for a malformed state."""
    checkpoint = Checkpoint.of(place, state)
    tensors: Mapping[str, Tensor] = checkpoint.learner["model"]
    return InitialWeights(place, checkpoint.step, tensors)


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
