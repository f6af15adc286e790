"""Devices of a rank: one to train on, and the same or others for inference."""

from collections.abc import Sequence

import torch

from kubebeast_learner.config import ConfigError
from kubebeast_learner.ranks.place import ALONE, Place


def choose_device(name: str, place: Place = ALONE, setting: str = "device") -> torch.device:
    """Returns the device `name`: auto is cuda if available, else cpu; for cuda, each of several ranks has its own GPU.

    Raises ConfigError, with the name `setting`, for a device that is not available.
    """
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if name == "cuda" and not place.is_alone:
        name = f"cuda:{place.local_rank}"
    try:
        device = torch.device(name)
        placed = torch.empty(0, device=device).device
    except (RuntimeError, AssertionError) as error:  # torch built without CUDA raises AssertionError
        raise ConfigError(f"{setting} = {name!r}: {error}") from error
    # PyTorch takes cuda for the current device, which another setting may change, and not for the equal of cuda:0.
    return placed if device.type == "cuda" else device


def choose_inference_devices(names: Sequence[str], place: Place = ALONE) -> list[torch.device]:
    """Returns this rank's share of the devices `names`, which apply to all ranks of a machine; empty without names.

    Each of N ranks gets every N-th device, or one that several ranks share if there are fewer devices than ranks.
    Without names, inference uses the training device.
    """
    own = names[place.local_rank :: place.num_local_ranks] or names[place.local_rank % max(1, len(names)) :][:1]
    return [choose_device(name, place, "inference_device") for name in own]
