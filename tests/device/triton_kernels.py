"""The Triton kernels of compiled updates, built for an H100 without a GPU. Import this after `gpus.install`."""

import json
from typing import Any

import torch
from torch import Tensor
from torch._guards import TracingContext, tracing
from torch._inductor import config as inductor
from torch._inductor.compile_fx import compile_fx_inner
from torch._inductor.decomposition import select_decomp_table
from torch._inductor.runtime.triton_heuristics import CachingAutotuner
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx import GraphModule
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn.utils.stateless import _reparametrize_module
from triton.backends.compiler import GPUTarget
from triton.backends.nvidia.driver import CudaDriver
from triton.runtime import driver

from kubebeast_learner.algorithm.learner import Learner
from kubebeast_learner.algorithm.made_up import made_up_rollout
from kubebeast_learner.algorithm.rollout import map_tensors, tensors_of
from kubebeast_learner.config import LossConfig, ModelConfig, OptimizerConfig
from kubebeast_learner.models import make_model
from tests.unit.learner.algorithm.learning_data import FRAMES, discrete

SM_90 = GPUTarget("cuda", 90, 32)
T, B = 20, 32


class H100(CudaDriver):  # type: ignore[misc]
    """A driver of Triton for a GPU that is not there."""

    def __init__(self) -> None:
        self.get_current_device = lambda: 0
        self.get_current_stream = lambda device: 0
        self.get_device_capability = lambda device: (9, 0)

    def get_current_target(self) -> GPUTarget:
        return SM_90


def main(model: str) -> None:
    """Prints the bytes of the machine code of each kernel as JSON."""
    torch.version.cuda = "13.0"
    torch._C._cuda_getCurrentRawStream = lambda device: 0
    driver.set_active(H100())
    print(json.dumps(build_kernels(*update_of(model))))


def update_of(name: str) -> tuple[GraphModule, list[Tensor], FakeTensorMode]:
    """Returns the forward and backward pass of an update in bfloat16, traced with tensors without data."""
    model = make_model([FRAMES], [discrete(6)], ModelConfig(model=name))
    learner = Learner(model, OptimizerConfig(), LossConfig(), schedule_steps=1, precision="bf16", compile="off")
    steps, rollout = learner._steps, made_up_rollout(model, [FRAMES], T, B)
    steps._device = torch.device("cuda:0")
    state = {**dict(model.named_parameters()), **dict(model.named_buffers())}

    def update(*tensors: Tensor) -> tuple[Tensor, ...]:
        new, rest = tensors[: len(state)], iter(tensors[len(state) : -1])
        with _reparametrize_module(model, dict(zip(state, new, strict=True))):
            batch = map_tensors(lambda tensor: next(rest), rollout)
            loss = steps._forward_eager(batch, tensors[-1])
        return torch.autograd.grad(loss.total, [each for each in new if each.requires_grad])

    mode = FakeTensorMode()
    with mode:
        tensors = [on_gpu(each) for each in (*state.values(), *tensors_of(rollout), torch.zeros(()))]
        return make_fx(update, decomposition_table=select_decomp_table())(*tensors), tensors, mode


def on_gpu(like: Tensor) -> Tensor:
    """Returns a tensor without data."""
    made = torch.empty_strided(like.shape, like.stride(), dtype=like.dtype, device="cuda:0")
    return made.requires_grad_(like.requires_grad)


def build_kernels(graph: GraphModule, tensors: list[Tensor], mode: FakeTensorMode) -> dict[str, int]:
    """Returns the bytes of machine code by kernel."""
    found: dict[str, int] = {}
    build = CachingAutotuner._precompile_config

    def keep(autotuner: Any, config: Any) -> Any:
        result = build(autotuner, config)
        found[autotuner.fn.__name__] = len(result.kernel.asm["cubin"])
        return result

    CachingAutotuner._precompile_config = keep  # type: ignore[assignment, method-assign]
    CachingAutotuner._make_launchers = lambda autotuner: None  # type: ignore[method-assign]
    options = {"compile_threads": 1, "force_disable_caches": True, "use_static_triton_launcher": False}
    with inductor.patch(options), tracing(TracingContext(mode)):
        compile_fx_inner(graph, [each.detach() for each in tensors])
    return found
