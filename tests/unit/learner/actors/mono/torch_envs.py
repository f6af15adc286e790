"""Environments that compute with torch; an import of this module registers them."""

from typing import Any

import gymnasium
import numpy as np
import torch
from numpy.typing import NDArray

Observation = NDArray[np.float32]


class Learns(gymnasium.Env[Observation, np.int64]):
    """A simulator that is trained during play, with gradients of its own. Episodes of 5 steps."""

    def __init__(self) -> None:
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (4,), np.float32)
        self.action_space = gymnasium.spaces.Discrete(2)
        self._model = torch.nn.Linear(4, 4)
        self._optimizer = torch.optim.SGD(self._model.parameters(), 1e-3)
        self._steps = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        super().reset(seed=seed)
        self._steps = 0
        self._state = torch.ones(4)
        return self._observe(), {}

    def step(self, action: np.int64) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        self._steps += 1
        self._state += 1  # in place, on a tensor of an earlier call
        predicted = self._model(self._state)
        self._optimizer.zero_grad()
        predicted.square().sum().backward()
        self._optimizer.step()
        self._state = predicted.detach().tanh()
        return self._observe(), 1.0, self._steps == 5, False, {}

    def _observe(self) -> Observation:
        return self._state.numpy().astype(np.float32)


class Sets(Learns):
    """Changes settings of torch in its constructor, and expects them in every step."""

    def __init__(self) -> None:
        torch.set_default_dtype(torch.float64)
        torch.set_num_threads(3)
        torch.use_deterministic_algorithms(True)
        torch.set_grad_enabled(True)
        super().__init__()

    def step(self, action: np.int64) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        assert torch.get_default_dtype() == torch.float64 and torch.get_num_threads() == 3
        assert torch.are_deterministic_algorithms_enabled()
        return super().step(action)


class Moves(Learns):
    """Makes its tensors on another device, and expects that of later ones."""

    def __init__(self) -> None:
        torch.set_default_device("meta")
        super().__init__()

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        self._steps = 0
        return np.zeros(4, np.float32), {}

    def step(self, action: np.int64) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        assert torch.empty(0).is_meta
        self._steps += 1
        return np.ones(4, np.float32), 1.0, self._steps == 5, False, {}


class Seeds(Learns):
    """Seeds torch at every reset, and expects the same numbers in every episode."""

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        torch.manual_seed(0)
        result = super().reset(seed=seed, options=options)
        generator = torch.Generator().manual_seed(0)
        self._expected = torch.rand(5, generator=generator)
        return result

    def step(self, action: np.int64) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        result = super().step(action)
        assert torch.rand(1) == self._expected[self._steps - 1]
        return result


for _env in (Learns, Sets, Moves, Seeds):
    gymnasium.register(f"{_env.__name__}-v0", entry_point=f"{__name__}:{_env.__name__}", disable_env_checker=True)
