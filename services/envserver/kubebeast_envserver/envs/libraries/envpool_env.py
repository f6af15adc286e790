"""Environments of EnvPool, which steps a whole vector of them in C++ threads, as a HostedEnv."""

from dataclasses import replace
from typing import Any

import numpy as np

from kubebeast_common.user_code import describe, import_user_module
from kubebeast_envserver.config import MAX_SEED
from kubebeast_envserver.envs.vector_env import ENVPOOL_PREFIX, VectorEnvRows
from kubebeast_envserver.rows.rows import Array, EnvironmentFailure

REFUSED = {
    "num_envs": "it is the number of environments a stream",
    "batch_size": "a stream steps all of its environments together",
    "seed": "seeds come from the seed of the env-server",
    "env_seed": "seeds come from the seed of the env-server",
    "reward_clip": "the learner clips rewards (--reward-clipping), and returns are of rewards as they are",
}
"""Arguments of envpool.make that cannot be set here, and the reasons."""


def make_envpool(
    env_id: str, num_envs: int, env_kwargs: dict[str, Any], seed: int | None, *, evaluation: bool
) -> "EnvPoolRows":
    """Makes B environments of "envpool/TaskId", or of "module:envpool/TaskId", with a module that may register tasks.

    `env_kwargs` are arguments of envpool.make; num_threads is 1 by default, as streams are processes. Environment i
    gets seed + i; for None, a seed is drawn, as EnvPool would always take 42. In an evaluation, episodic_life is off,
    so that episodes are whole games.

    Raises ValueError for a task or an argument that EnvPool does not have, and EnvironmentFailure if EnvPool cannot
    make it.
    """
    module, _, name = env_id.rpartition(":")
    try:
        if module:
            import_user_module(module)
        import envpool
    except ImportError as error:
        hint = "" if module else ": pip install 'kubebeast[envpool]'"
        raise ValueError(f"env = {env_id!r}: {error}{hint}") from error
    task = name.removeprefix(ENVPOOL_PREFIX)
    if task not in envpool.list_all_envs():
        raise ValueError(f"env = {env_id!r}: EnvPool {envpool.__version__} has no task {task!r}")
    for argument in REFUSED.keys() & env_kwargs.keys():
        raise ValueError(f"env_kwargs: {argument} = {env_kwargs[argument]!r} is not for {env_id}: {REFUSED[argument]}")
    settings = {"num_threads": 1, **env_kwargs}
    if evaluation and "episodic_life" in settings:
        settings["episodic_life"] = False
    if seed is None:
        seed = int(np.random.default_rng().integers(MAX_SEED + 2 - num_envs))
    try:
        config = envpool.make_spec(task, **settings).config
        frame_stack = getattr(config, "stack_num", 1)
        if frame_stack > 1:
            settings["stack_num"] = 1
        envs = envpool.make_gymnasium(task, num_envs=num_envs, seed=seed, **settings)
    except (AssertionError, TypeError, ValueError) as error:
        raise ValueError(f"env_kwargs = {env_kwargs!r}: {str(error).partition(chr(10))[0]}") from error
    except Exception as error:
        raise EnvironmentFailure(f"{env_id} could not be made: {describe(error)}") from error
    return EnvPoolRows(envs, frame_stack, episodic_life=bool(getattr(config, "episodic_life", False)))


class EnvPoolRows(VectorEnvRows):
    """B environments of one EnvPool in lock-step; they fail together, like any other vector.

    The step after the end of an episode resets its environment and ignores the action, with reward 0: NEXT_STEP, as in
    metadata["autoreset_mode"] (https://envpool.readthedocs.io/en/latest/content/python_interface.html#auto-reset).
    Frames have their channels first. EnvPool makes single frames; consumers that need stacks keep them (frame_stack),
    as with AtariEnv. With its episodic_life, a lost life ends an episode, up to noop_max frames of no-ops lead to the
    next one, and `episodes` are still whole games.
    """

    kind = "environments of EnvPool"

    def __init__(self, envs: Any, frame_stack: int, *, episodic_life: bool) -> None:
        """`envs` is a GymnasiumEnvPool with its seeds set, and with single frames if `frame_stack` is above 1.

        Raises UnsupportedSpaceError for spaces that cannot be sent.
        """
        super().__init__(envs, seed=None)
        self._episodic_life = episodic_life
        if frame_stack > 1:
            (leaf,) = self.spec_observation
            shape = leaf.shape[1:] if leaf.shape[0] == 1 else leaf.shape
            self.spec_observation = [replace(leaf, shape=shape, frame_stack=frame_stack)]

    def _whole_games(self, terminated: Array, truncated: Array, info: dict[str, Any]) -> Array:
        if self._episodic_life:
            terminated = terminated & (info.get("terminated", terminated) != 0)
        return terminated | truncated

    def _leaves(self, observation: Any) -> list[Array]:
        leaves = super()._leaves(observation)
        return [
            leaf.reshape(self.num_envs, *spec.shape) for leaf, spec in zip(leaves, self.spec_observation, strict=True)
        ]
