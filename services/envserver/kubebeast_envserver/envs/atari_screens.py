"""Color screens of Atari games, beside the small gray frames of the model."""

from dataclasses import replace

import numpy as np

from kubebeast_envserver.envs.atari import AtariEnv, AtariSettings
from kubebeast_envserver.rows.rows import Array, EnvironmentFailure, HostedEnv, StepRows, WrappedEnv

SCREEN_HEIGHT, SCREEN_WIDTH = 210, 160
FRAMES_PER_SECOND = 60


class AtariScreens(WrappedEnv):
    """A HostedEnv of Atari games as a RenderedEnv.

    ALE's vector environment keeps no color frames. Therefore the same games are played a second time, with the same
    seed and the same actions, for their screens; both must agree on every reward and every end.
    """

    def __init__(self, env: HostedEnv, game: str, settings: AtariSettings, seed: int) -> None:
        """`env` must be made with `game`, `settings` and `seed`, and not be reset yet. It may stack frames."""
        super().__init__(env)
        self.render_fps = FRAMES_PER_SECOND / settings.frameskip
        in_colour = replace(settings, grayscale=False, img_height=SCREEN_HEIGHT, img_width=SCREEN_WIDTH, frame_stack=1)
        self._twin = AtariEnv(game, env.num_envs, in_colour, seed)
        self._screens: Array = np.zeros((env.num_envs, SCREEN_HEIGHT, SCREEN_WIDTH, 3), np.uint8)

    def reset(self) -> StepRows:
        return self._checked(self._env.reset(), self._twin.reset())

    def step(self, actions: list[Array]) -> StepRows:
        return self._checked(self._env.step(actions), self._twin.step(actions))

    def render(self) -> Array:
        return self._screens

    def close(self) -> None:
        super().close()
        self._twin.close()

    def _checked(self, rows: StepRows, twins: StepRows) -> StepRows:
        for name in ("rewards", "terminated", "truncated"):
            if not np.array_equal(getattr(rows, name), getattr(twins, name)):
                raise EnvironmentFailure(
                    f"the game and its copy in colour differ: {name} {getattr(rows, name)} and {getattr(twins, name)}"
                )
        (self._screens,) = twins.observation
        return rows
