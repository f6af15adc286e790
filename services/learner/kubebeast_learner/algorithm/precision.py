"""Choice of the arithmetic and of compilation for the hardware."""

from typing import Literal

import torch
from torch import nn

from kubebeast_learner.models.base import Model

PrecisionChoice = Literal["auto", "fp32", "bf16"]
CompileChoice = Literal["auto", "on", "off"]


def low_precision_dtype(choice: PrecisionChoice, model: Model, device: torch.device) -> torch.dtype:
    """Returns the dtype in which the model's low_precision_part computes on `device`.

    Weights and optimizer stay float32. auto is bfloat16 if the model gains from it and the hardware computes in it.
    """
    if choice == "fp32" or model.low_precision_part is None:
        return torch.float32
    return torch.bfloat16 if choice == "bf16" or has_bf16_arithmetic(device) else torch.float32


def should_compile(choice: CompileChoice, model: Model, device: torch.device) -> bool:
    """Returns True if the update should be compiled.

    auto: on a GPU, since fusion saves many small kernels, unless the core is recurrent, which runs eagerly in any case.
    On a CPU the models' own layout and in-place operations leave nothing to gain.
    """
    return choice == "on" or (choice == "auto" and device.type == "cuda" and model.core_state_size == 0)


def has_bf16_arithmetic(device: torch.device) -> bool:
    """Returns True if `device` multiplies bfloat16 natively; emulation is slower than float32."""
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    capabilities = torch.cpu.get_capabilities()
    return bool(capabilities.get("avx512_bf16") or capabilities.get("amx_bf16"))


def use_channels_last(module: nn.Module, device: torch.device) -> None:
    """Moves a module to `device`, with convolution weights in channels_last format, the fastest on CPU and GPU."""
    module.to(device=device, memory_format=torch.channels_last)  # type: ignore[call-overload]
