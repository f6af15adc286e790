"""Frame stacks. The rule of this project: a stack is filled with the episode's first frame, then shifts by one."""

from dataclasses import replace

import numpy as np

from kubebeast_envserver.rows.rows import Array, HostedEnv, StepRows, WrappedEnv


class FullStacks(WrappedEnv):
    """A HostedEnv with rows of whole stacks [B, frame_stack, *shape], around one with newest frames."""

    def __init__(self, env: HostedEnv) -> None:
        super().__init__(env)
        self._stacks: list[Array] = []

    def reset(self) -> StepRows:
        rows = self._env.reset()
        self._stacks = list(rows.observation)
        for i, (leaf, frames) in enumerate(zip(self.spec_observation, rows.observation, strict=True)):
            if leaf.frame_stack > 1:
                self._stacks[i] = np.repeat(frames[:, None], leaf.frame_stack, axis=1)
        return replace(rows, observation=list(self._stacks))

    def step(self, actions: list[Array]) -> StepRows:
        rows = self._env.step(actions)
        for i, (leaf, frames) in enumerate(zip(self.spec_observation, rows.observation, strict=True)):
            if leaf.frame_stack > 1:
                stack = np.concatenate([self._stacks[i][:, 1:], frames[:, None]], axis=1)
                stack[rows.is_first] = frames[rows.is_first][:, None]
                self._stacks[i] = stack
            else:
                self._stacks[i] = frames
        return replace(rows, observation=list(self._stacks))
