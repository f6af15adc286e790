"""Examples of users' optimizers: one that works, and one for every mistake."""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import nn


class Momentum(torch.optim.Optimizer):
    """The velocity is state of each parameter, the number of steps is state of the group."""

    def __init__(self, parameters: Iterable[nn.Parameter], lr: float, friction: float = 0.5) -> None:
        super().__init__(parameters, {"lr": lr, "friction": friction, "num_steps": 0})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        for group in self.param_groups:
            group["num_steps"] += 1
            for parameter in group["params"]:
                velocity = self.state[parameter].setdefault("velocity", torch.zeros_like(parameter))
                velocity.mul_(1 - group["friction"]).add_(parameter.grad)
                parameter.sub_(group["lr"] / group["num_steps"] * velocity)


class NeedsAClosure(Momentum):
    def step(self, closure: Callable[[], float]) -> None:  # type: ignore[override]
        closure()


class KeepsObjects(Momentum):
    """Keeps an object that a checkpoint cannot hold."""

    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        super().step()
        for group in self.param_groups:
            group["owner"] = KeepsObjects


class Explodes(Momentum):
    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        for group in self.param_groups:
            for parameter in group["params"]:
                parameter.fill_(torch.nan)


class Fails(Momentum):
    def __init__(self, parameters: Iterable[nn.Parameter], lr: float) -> None:
        raise ValueError("not today")


def not_a_class() -> None: ...
