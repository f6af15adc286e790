"""Choice of the arithmetic and of compilation for the hardware."""

import os
from typing import Literal

import torch
from torch import nn

from kubebeast_learner.config import TrainingConfig
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


def should_compile(choice: CompileChoice, model: Model, device: torch.device, *, uses_graphs: bool = False) -> bool:
    """Returns True if the update, and the convolutions of inference in graphs, should be compiled.

    auto: on a GPU, since fusion saves starts of kernels, and between convolutions also passes over the memory; in a
    graph only the latter counts. A recurrent core runs eagerly in any case. On a CPU the models' own layout and
    in-place operations leave nothing to gain.
    """
    gains = model.low_precision_part is not None or not uses_graphs
    is_useful = device.type == "cuda" and gains and model.core_state_size == 0
    return choice == "on" or (choice == "auto" and is_useful)


def should_use_graphs(config: TrainingConfig, device: torch.device) -> bool:
    """Returns True if updates and inference on `device` should run as CUDA graphs.

    auto: on a GPU, unless code of the user's own takes part, which may do something on the host in every call that a
    graph would not repeat.
    """
    choice = config.run.cuda_graphs
    return device.type == "cuda" and (choice == "on" or (choice == "auto" and not config.user_code))


def compute_in_float32() -> None:
    """Keeps GPUs from computing what is float32 in TensorFloat-32, which has 10 bits for the mantissa, in this process.

    PyTorch allows it for convolutions and LSTMs by default. bfloat16 is the choice for more speed.
    """
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cuda.matmul.allow_tf32 = False


def choose_fastest_convolutions() -> None:
    """Makes a GPU try all algorithms for the first convolution of every shape, in this process, unless it must repeat
    its results.

    For graphs, whose shapes are few: https://docs.pytorch.org/docs/stable/backends.html#torch.backends.cudnn.benchmark
    """
    torch.backends.cudnn.benchmark = not torch.are_deterministic_algorithms_enabled()


def repeat_results() -> None:
    """Makes PyTorch take only operations that repeat their results, in this process; it warns of others.

    Comes before the first use of a GPU: cuBLAS reads its variable once
    (https://docs.pytorch.org/docs/stable/notes/randomness.html).
    """
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(True, warn_only=True)
    # Every new tensor would be filled, against programs that read what they have not written. The attribute is a
    # property of a subclass of modules, which PyTorch's types do not show.
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]


def has_bf16_arithmetic(device: torch.device) -> bool:
    """Returns True if `device` multiplies bfloat16 natively, and more of it per second than float32.

    On Intel's processors that takes AMX: their AVX-512 multiplies bfloat16 on one port, float32 on two
    (https://uops.info/table.html, VDPBF16PS and VFMADD132PS).
    """
    if device.type == "cuda":
        # Not torch.cuda.is_bf16_supported, which asks the current GPU.
        return torch.version.hip is not None or torch.cuda.get_device_properties(device).major >= 8
    capabilities = torch.cpu.get_capabilities()
    is_intel = str(capabilities.get("cpu_name", "")).startswith("Intel")
    return bool(capabilities.get("amx_bf16") or (capabilities.get("avx512_bf16") and not is_intel))


def use_channels_last(module: nn.Module, device: torch.device) -> None:
    """Moves a module to `device`, with convolution weights in channels_last format, the fastest on CPU and GPU."""
    module.to(device=device, memory_format=torch.channels_last)  # type: ignore[call-overload]
