"""Checkpoints: atomic files of plain values and tensors, the newest few kept, a damaged newest passed over."""

import io
import logging
import re
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from kubebeast_common import atomic_file
from kubebeast_common.atomic_file import write_atomically
from kubebeast_learner.run import weights_file

logger = logging.getLogger(__name__)

FORMAT = 1
REQUIRED_KEYS = frozenset({"format", "step", "env_spec", "config", "learner"})
_NAME = re.compile(r"checkpoint-(\d+)\.pt")


class CheckpointError(RuntimeError):
    """A checkpoint that cannot be read or does not fit; the message names the file and the reason."""


class CheckpointStore:
    """The checkpoints of one run, `checkpoint-<step>.pt` in its folder, beside the newest weights. For one thread."""

    def __init__(self, folder: Path, keep: int) -> None:
        self._folder = folder
        self._keep = keep
        self._damaged: list[Path] = []

    def save(self, state: Mapping[str, Any]) -> Path:
        """Writes `state` under its step, keeps the newest `keep` readable files, and replaces the weights' file.

        state: REQUIRED_KEYS and more; values are tensors and plain Python values, as `torch.load(weights_only=True)`
        demands. A crash at any moment leaves the older checkpoints and either no new one or a whole one. OSError when
        the disk is full; the unfinished file is removed. Weights that cannot be written are only logged: the
        checkpoint holds them too.
        """
        missing = REQUIRED_KEYS - state.keys()
        if missing:
            raise ValueError(f"state lacks {sorted(missing)}")
        self._folder.mkdir(parents=True, exist_ok=True)
        self._remove_unfinished()
        path = self._folder / f"checkpoint-{state['step']:012d}.pt"
        # Written from memory: torch hides the operating system's reason when a write fails.
        content = io.BytesIO()
        torch.save(dict(state), content)
        write_atomically(path, content.getbuffer())
        # A damaged file may have a higher step than this one: it must not count as one of the newest.
        while self._damaged:
            self._damaged.pop().unlink(missing_ok=True)
        for old in self.paths()[self._keep :]:
            old.unlink(missing_ok=True)
        self._save_weights(state)
        return path

    def paths(self) -> list[Path]:
        """The checkpoint files, newest (highest step) first."""
        if not self._folder.is_dir():
            return []
        steps = {path: step for path in self._folder.iterdir() if (step := step_of(path)) is not None}
        return sorted(steps, key=lambda path: steps[path], reverse=True)

    def load_newest(self) -> tuple[Path, dict[str, Any]] | None:
        """The newest checkpoint that can be read, with a warning for each that cannot; None when there is none.

        The next `save` deletes those that cannot.

        CheckpointError when there are checkpoints and none can be read: starting afresh would overwrite them.
        """
        paths = self.paths()
        for path in paths:
            try:
                return path, load(path)
            except CheckpointError as error:
                logger.warning("%s; trying the one before", error)
                self._damaged.append(path)
        if paths:
            raise CheckpointError(f"none of the {len(paths)} checkpoints in {self._folder} can be read")
        return None

    def _save_weights(self, state: Mapping[str, Any]) -> None:
        path = self._folder / weights_file.NAME
        try:
            write_atomically(path, weights_file.encode(state))
        except OSError as error:
            logger.error("%s not written: %s", path, error)

    def _remove_unfinished(self) -> None:
        """What a process that was killed while it saved has left."""
        for pattern in ("checkpoint-*.pt", weights_file.NAME):
            for path in self._folder.glob(pattern + atomic_file.SUFFIX):
                path.unlink(missing_ok=True)


def step_of(path: Path) -> int | None:
    """Env-steps that a checkpoint's name tells; None of any other file."""
    match = _NAME.fullmatch(path.name)
    return int(match[1]) if match else None


def load(path: Path) -> dict[str, Any]:
    """Reads one checkpoint onto the CPU without running code from it. CheckpointError names the file and the reason.

    Of a weights' file (.safetensors) the state has what playing needs: step, env_spec, settings, the model's weights.
    """
    try:
        if path.suffix == weights_file.SUFFIX:
            return weights_file.read(path)
        with zipfile.ZipFile(path) as archive:  # torch.load does not look at the checksums
            if damaged := archive.testzip():
                raise zipfile.BadZipFile(f"the checksum of {damaged} is wrong")
        state = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # a damaged file raises one of a dozen types
        reason = str(error).strip().partition("\n")[0] or type(error).__name__
        raise CheckpointError(f"checkpoint {path} cannot be read: {reason}") from error
    if not isinstance(state, dict) or REQUIRED_KEYS - state.keys():
        raise CheckpointError(f"checkpoint {path} is not a KubeBeast checkpoint")
    if state["format"] != FORMAT:
        raise CheckpointError(f"checkpoint {path} has format {state['format']}, this version reads {FORMAT}")
    return state


def rng_state() -> dict[str, Any]:
    """The states of torch's generators, as tensors."""
    cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_available() else []
    return {"cpu": torch.get_rng_state(), "cuda": cuda}


def restore_rng_state(state: Mapping[str, Any]) -> None:
    """Puts `rng_state` back; a device that is not here any more is passed over."""
    torch.set_rng_state(state["cpu"])
    for device, device_state in enumerate(state["cuda"][: torch.cuda.device_count()]):
        torch.cuda.set_rng_state(device_state, device)
