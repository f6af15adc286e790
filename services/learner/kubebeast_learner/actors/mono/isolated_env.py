"""Environments in a process that also runs a model."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numpy.typing import NDArray

from kubebeast_envserver.rows.rows import Array, HostedEnv, StepRows, WrappedEnv
from kubebeast_learner.machine import torch_state

EnvT = TypeVar("EnvT", bound=HostedEnv)


def isolated(make: Callable[[], EnvT]) -> EnvT:
    """Returns the environments of `make`, with torch settings separate from those of the models of this process.

    Call neither this nor the environments in torch.inference_mode or torch.no_grad: environments may use gradients.
    """
    with torch_state.of_environments():
        env = make()
    return cast(EnvT, _Isolated(env))


class _Isolated(WrappedEnv):
    """Environments with separate torch settings; it has the methods of a RenderedEnv, for an `env` that is one."""

    def reset(self) -> StepRows:
        with torch_state.of_environments():
            return self._env.reset()

    def step(self, actions: list[Array]) -> StepRows:
        with torch_state.of_environments():
            return self._env.step(actions)

    def render(self) -> NDArray[Any]:
        rendered: Any = self._env
        with torch_state.of_environments():
            return cast(NDArray[Any], rendered.render())

    @property
    def render_fps(self) -> float:
        rendered: Any = self._env
        return float(rendered.render_fps)

    def close(self) -> None:
        with torch_state.of_environments():
            super().close()
