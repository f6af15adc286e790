"""Weights of a run as safetensors: the part that can be read without PyTorch.

The metadata are text: `step`, and as JSON `env_spec` (EnvSpec.to_plain), `settings` (the model's and a few that playing
needs), `task_configs` (EnvConfig.to_plain by task) and `env_statistics` (the statistics of the environments' wrappers).
"""

import json
from pathlib import Path

from kubebeast_common.spec.env_spec import EnvSpec

NAME = "weights.safetensors"
SUFFIX = ".safetensors"
_MAX_HEADER_BYTES = 100_000_000
"""The format's own limit, https://github.com/huggingface/safetensors#format."""


def read_metadata(path: Path) -> dict[str, str]:
    """Returns the metadata of a safetensors file. Raises OSError, or ValueError if it is none."""
    with open(path, "rb") as file:
        size = int.from_bytes(file.read(8), "little")
        if not 0 < size <= _MAX_HEADER_BYTES:
            raise ValueError(f"a header of {size} bytes is none of a safetensors file")
        header = json.loads(file.read(size))
    metadata = header.get("__metadata__", {}) if isinstance(header, dict) else None
    if not isinstance(metadata, dict):
        raise ValueError("its metadata are no mapping")
    return {str(name): str(value) for name, value in metadata.items()}


def read_env_spec(path: Path) -> EnvSpec | None:
    """Returns the environment that the weights play; None if there is no readable file."""
    try:
        return EnvSpec.from_plain(json.loads(read_metadata(path)["env_spec"]))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
