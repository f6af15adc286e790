"""Simulated GPUs: torch.cuda with tensors on the CPU.

Not simulated: time, sizes of memory, the rounding of kernels, cuDNN, and torch.compile. Gloo takes the place of NCCL.
"""

import functools
import types
from collections.abc import Callable
from typing import Any

import torch
from torch.optim import optimizer
from torch.utils import _foreach_utils

from tests.device.simulation import graphs, streams
from tests.device.simulation.operations import run
from tests.device.simulation.tensors import SimulatedGenerator, SimulatedTensor

_fallback = torch.library.Library("_", "IMPL")  # type: ignore[no-untyped-call]
"""Operations without a tensor among their arguments."""
_MEMORY_BYTES = 80 << 30


def install(num_gpus: int) -> None:
    """Makes PyTorch find GPUs, in this process and until its end."""
    torch._C._set_only_lift_cpu_tensors(True)
    torch.__future__.set_overwrite_module_params_on_conversion(True)
    _fallback.fallback(run, "CUDA")  # type: ignore[no-untyped-call]
    for name, value in _functions(num_gpus).items():
        setattr(torch.cuda, name, value)
    torch.backends.cudnn.is_acceptable = lambda tensor: False
    torch.cuda.amp.common.amp_definitely_not_available = lambda: False
    for name in ("backward", "grad"):
        setattr(torch.autograd, name, _in_own_thread(getattr(torch.autograd, name)))
    init_process_group = torch.distributed.init_process_group
    torch.distributed.init_process_group = lambda backend, **options: init_process_group(
        backend.replace("nccl", "gloo"), **options
    )
    torch.Generator = SimulatedGenerator  # type: ignore[misc]
    for module in (_foreach_utils, optimizer):
        module._foreach_supported_types = [torch.Tensor, torch.nn.Parameter, SimulatedTensor]  # type: ignore[attr-defined]


def _in_own_thread(differentiate: Callable[..., Any]) -> Callable[..., Any]:
    """Makes a backward pass use the caller's thread and so its streams."""

    @functools.wraps(differentiate)
    def call(*args: Any, **kwargs: Any) -> Any:
        with torch.autograd.set_multithreading_enabled(False):
            return differentiate(*args, **kwargs)

    return call


def _functions(num_gpus: int) -> dict[str, Any]:
    properties = types.SimpleNamespace(
        name="Simulated GPU",
        total_memory=_MEMORY_BYTES,
        major=9,
        minor=0,
        multi_processor_count=132,
        regs_per_multiprocessor=65536,
        max_threads_per_multi_processor=2048,
        warp_size=32,
    )
    return {
        "CUDAGraph": graphs.Graph,
        "Event": streams.Event,
        "Stream": streams.Stream,
        "_lazy_init": lambda: None,
        "current_device": streams.current_device,
        "current_stream": streams.current_stream,
        "default_stream": streams.default_stream,
        "device": streams.UsedDevice,
        "device_count": lambda: num_gpus,
        "device_memory_used": lambda index=0: _MEMORY_BYTES // 2,
        "get_device_capability": lambda index=0: (9, 0),
        "get_device_name": lambda index=0: properties.name,
        "get_device_properties": lambda index=0: properties,
        "get_rng_state": lambda device=None: torch.zeros(16, dtype=torch.uint8),
        "get_rng_state_all": lambda: [torch.zeros(16, dtype=torch.uint8)] * num_gpus,
        "graph": graphs.graph,
        "graph_pool_handle": object,
        "is_available": lambda: True,
        "is_bf16_supported": lambda including_emulation=True: True,
        "is_current_stream_capturing": lambda: streams.current_stream().capture is not None,
        "mem_get_info": lambda index=0: (_MEMORY_BYTES // 2, _MEMORY_BYTES),
        "memory_reserved": lambda index=0: _MEMORY_BYTES // 4,
        "set_device": streams.set_device,
        "set_rng_state": lambda state, device=None: None,
        "stream": streams.use_stream,
        "synchronize": streams.synchronize,
        "utilization": lambda index=0: 50,
    }
