"""Pictures of environments that cannot draw themselves: their image observations."""

import numpy as np

from kubebeast_common.spec.leaves import Leaf
from kubebeast_envserver.rows.rows import Array, HostedEnv, StepRows, WrappedEnv


class ObservationFrames(WrappedEnv):
    """A HostedEnv with whole stacks as a RenderedEnv: its image observation, or the newest frame of a stack."""

    render_fps = 30.0

    def __init__(self, env: HostedEnv) -> None:
        """Raises ValueError if the observation is not one uint8 image [H, W], [H, W, 1] or [H, W, 3]."""
        if len(env.spec_observation) != 1 or not _is_image(env.spec_observation[0]):
            leaves = ", ".join(f"{leaf.dtype} {list(leaf.row_shape)}" for leaf in env.spec_observation)
            raise ValueError(f"it has no render mode rgb_array, and its observation, {leaves}, is no image")
        super().__init__(env)
        self._newest: StepRows | None = None

    def reset(self) -> StepRows:
        self._newest = self._env.reset()
        return self._newest

    def step(self, actions: list[Array]) -> StepRows:
        self._newest = self._env.step(actions)
        return self._newest

    def render(self) -> Array:
        if self._newest is None:
            raise RuntimeError("there is nothing to render before reset")
        (images,) = self._newest.observation
        if self.spec_observation[0].frame_stack > 1:
            images = images[:, -1]
        shape = (*images.shape[:3], 3)
        return np.array(np.broadcast_to(images if images.ndim == 4 else images[..., None], shape))


def _is_image(leaf: Leaf) -> bool:
    return leaf.dtype == "uint8" and (len(leaf.shape) == 2 or (len(leaf.shape) == 3 and leaf.shape[2] in (1, 3)))
