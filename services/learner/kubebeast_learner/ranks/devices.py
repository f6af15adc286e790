"""Which devices a rank computes on: it trains on one, and chooses actions there or on others."""

from collections.abc import Sequence

import torch

from kubebeast_learner.config import ConfigError
from kubebeast_learner.ranks.place import ALONE, Place


def choose_device(name: str, place: Place = ALONE, setting: str = "device") -> torch.device:
    """auto is cuda where there is one, else cpu; of several ranks each takes its own GPU for cuda.

    ConfigError for a device that is not here, which `setting` named.
    """
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if name == "cuda" and not place.is_alone:
        name = f"cuda:{place.local_rank}"
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:  # torch built without CUDA raises AssertionError
        raise ConfigError(f"{setting} = {name!r}: {error}") from error
    return device


def choose_inference_devices(names: Sequence[str], place: Place = ALONE) -> list[torch.device]:
    """Of devices that are named for all ranks of a machine those of one: every second, third, ... of them, or one that
    several ranks have where there are fewer devices than ranks. Without names none: inference is where it trains.
    """
    own = names[place.local_rank :: place.num_local_ranks] or names[place.local_rank % max(1, len(names)) :][:1]
    return [choose_device(name, place, "inference_device") for name in own]
