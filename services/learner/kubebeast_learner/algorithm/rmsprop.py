"""RMSProp in one pass over the weights."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.optim.adam import adam

_STEP = 1e18
"""Number of steps at which Adam's correction of the first steps is a division by exactly 1."""


class RMSprop(torch.optim.RMSprop):
    """torch.optim.RMSprop with one fused operation per step if there is no momentum.

    square_avg = alpha square_avg + (1 - alpha) g^2, weight -= lr g / (sqrt(square_avg) + eps): that is Adam with
    beta1 = 0 and without its correction of the first steps. torch's own RMSProp goes over all weights five times, and
    takes three times as long if averages have become denormal, as those of units that never fire do.
    """

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        """Takes the arguments of torch.optim.RMSprop."""
        super().__init__(*arguments, **settings)
        self._steps: dict[torch.device, Tensor] = {}

    @property
    def is_fused(self) -> bool:
        """True if a step is one operation."""
        return not any(group["momentum"] or group["centered"] for group in self.param_groups)

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Makes one step for the parameters with a gradient; returns the result of `closure`, if there is one."""
        if closure is not None or not self.is_fused:
            return super().step(closure)
        for group in self.param_groups:
            self._fused_step(group)
        return None

    def _fused_step(self, group: dict[str, Any]) -> None:
        parameters = [parameter for parameter in group["params"] if parameter.grad is not None]
        gradients = [parameter.grad for parameter in parameters]
        adam(
            parameters,
            gradients,
            exp_avgs=gradients,  # with beta1 = 0 their average is the newest, written in place
            exp_avg_sqs=[self._square_avg(parameter) for parameter in parameters],
            max_exp_avg_sqs=[],
            state_steps=[self._step_on(parameter.device) for parameter in parameters],
            fused=True,
            found_inf=getattr(self, "found_inf", None),  # as torch.optim.Adam takes it from a GradScaler
            amsgrad=False,
            beta1=0.0,
            beta2=group["alpha"],
            lr=group["lr"],
            weight_decay=group["weight_decay"],
            eps=group["eps"],
            maximize=group["maximize"],
        )

    def _step_on(self, device: torch.device) -> Tensor:
        """Returns _STEP on a device; float32 does not change by adding 1 to it."""
        if device not in self._steps:
            self._steps[device] = torch.full((), _STEP, device=device)
        return self._steps[device]

    def _square_avg(self, parameter: Tensor) -> Tensor:
        state = self.state[parameter]
        if not state:
            state["step"] = torch.zeros(())
            state["square_avg"] = torch.zeros_like(parameter, memory_format=torch.preserve_format)
        average: Tensor = state["square_avg"]
        return average
