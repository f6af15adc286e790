"""The dtype of low precision: https://docs.pytorch.org/docs/stable/amp.html."""

import torch
from torch import Tensor


def compute_dtype(tensor: Tensor) -> torch.dtype:
    """Returns the dtype in which layers compute with a tensor of floats: autocast's if enabled, else its own."""
    device_type = tensor.device.type
    return torch.get_autocast_dtype(device_type) if torch.is_autocast_enabled(device_type) else tensor.dtype
