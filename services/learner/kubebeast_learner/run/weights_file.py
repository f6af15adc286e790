"""The weights of a run as safetensors: what others need to play with a model, and nothing to train it further.

The metadata are text: `step`, and as JSON `env_spec` (EnvSpec.to_plain) and `settings` (the model's and
PLAY_SETTINGS).
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch

from kubebeast_learner.config import ModelConfig
from kubebeast_learner.config.sources import setting_types

NAME = "weights.safetensors"
SUFFIX = ".safetensors"
PLAY_SETTINGS = ("env", "preset", "reward_clipping")


def encode(state: Mapping[str, Any]) -> bytes:
    """The file's content from a checkpoint's state."""
    # Copies: a checkpoint may share memory between tensors, or hold them in another order than C's.
    tensors = {name: tensor.detach().cpu().clone().contiguous() for name, tensor in state["learner"]["model"].items()}
    names = [name for name in (*setting_types(ModelConfig), *PLAY_SETTINGS) if name in state["config"]]
    metadata = {
        "format": "pt",
        "step": str(state["step"]),
        "env_spec": json.dumps(state["env_spec"]),
        "settings": json.dumps({name: state["config"][name] for name in names}),
    }
    return safetensors.torch.save(tensors, metadata)


def read(path: Path) -> dict[str, Any]:
    """A checkpoint's state as far as the file holds it. SafetensorError, ValueError or OSError when it cannot."""
    with safetensors.safe_open(path, framework="pt") as file:
        metadata = file.metadata() or {}
        if missing := {"step", "env_spec", "settings"} - metadata.keys():
            raise ValueError(f"its metadata lack {', '.join(sorted(missing))}: it is not from KubeBeast")
        return {
            "step": int(metadata["step"]),
            "env_spec": json.loads(metadata["env_spec"]),
            "config": json.loads(metadata["settings"]),
            "learner": {"model": {name: file.get_tensor(name) for name in file.keys()}},  # noqa: SIM118 - not a mapping
        }
