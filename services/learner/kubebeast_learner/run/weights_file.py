"""Weights of a run as safetensors, written and read with their tensors; kubebeast_runs.weights describes the file."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch

from kubebeast_common.cli.settings import setting_types
from kubebeast_learner.config import ModelConfig

PLAY_SETTINGS = ("env", "preset", "reward_clipping", "task_shares")


def encode(state: Mapping[str, Any]) -> bytes:
    """Returns the content of the file for the state of a checkpoint."""
    # Copies: tensors of a checkpoint may share memory, or have an order other than C's.
    tensors = {name: tensor.detach().cpu().clone().contiguous() for name, tensor in state["learner"]["model"].items()}
    names = [name for name in (*setting_types(ModelConfig), *PLAY_SETTINGS) if name in state["config"]]
    metadata = {
        "format": "pt",
        "step": str(state["step"]),
        "env_spec": json.dumps(state["env_spec"]),
        "settings": json.dumps({name: state["config"][name] for name in names}),
        "task_configs": json.dumps(state.get("task_configs", {})),
        "env_statistics": json.dumps(state.get("env_statistics", [])),
    }
    return safetensors.torch.save(tensors, metadata)


def read(path: Path) -> dict[str, Any]:
    """Returns the part of a checkpoint's state in the file. Raises SafetensorError, ValueError or OSError."""
    with safetensors.safe_open(path, framework="pt") as file:
        metadata = file.metadata() or {}
        if missing := {"step", "env_spec", "settings"} - metadata.keys():
            raise ValueError(f"its metadata lack {', '.join(sorted(missing))}: it is not from KubeBeast")
        return {
            "step": int(metadata["step"]),
            "env_spec": json.loads(metadata["env_spec"]),
            "config": json.loads(metadata["settings"]),
            "task_configs": json.loads(metadata.get("task_configs", "{}")),
            "env_statistics": json.loads(metadata.get("env_statistics", "[]")),
            "learner": {"model": {name: file.get_tensor(name) for name in file.keys()}},  # noqa: SIM118 - not a mapping
        }
