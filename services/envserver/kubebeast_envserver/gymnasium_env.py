"""Any gymnasium environment, stepped one after the other in this process."""

import importlib
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode

from kubebeast_envserver.episodes import EpisodeCounter
from kubebeast_envserver.rows import Array, EnvironmentFailure, StepRows, checked_rewards
from kubebeast_envserver.spaces import flatten, leaves_of, unflatten

_RENDER_MODE = "rgb_array"
_DEFAULT_RENDER_FPS = 30.0


class GymnasiumEnv:
    """B environments of one gymnasium id as a HostedEnv. Observations keep the dtype of their space."""

    def __init__(
        self, env_id: str, num_envs: int, env_kwargs: dict[str, Any], seed: int | None, *, render: bool = False
    ) -> None:
        """env_id: "Id" or "module:Id", where importing the module registers the id. Environment i gets seed + i.

        render: be a RenderedEnv; only where can_render.
        Raises ValueError for an id nobody registered, UnsupportedSpaceError for a space that cannot be sent.
        """
        module, _, name = env_id.rpartition(":")
        if render:
            env_kwargs = {**env_kwargs, "render_mode": _RENDER_MODE}
        try:
            if module:
                importlib.import_module(module)
            self._envs: gymnasium.vector.VectorEnv[Any, Any, Any] = gymnasium.make_vec(
                name,
                num_envs=num_envs,
                vectorization_mode="sync",
                vector_kwargs={"autoreset_mode": AutoresetMode.NEXT_STEP},
                **env_kwargs,
            )
        except (gymnasium.error.Error, ImportError) as error:
            raise ValueError(f"env = {env_id!r}: {error}") from error
        except Exception as error:
            raise EnvironmentFailure(f"{env_id} could not be made: {error!r}") from error
        metadata = self._envs.metadata
        self.can_render = _RENDER_MODE in (metadata.get("render_modes") or ())
        """Whether the environment can be made with `render`."""
        self.render_fps = float(metadata.get("render_fps") or _DEFAULT_RENDER_FPS)
        self.num_envs = num_envs
        self.spec_observation = leaves_of(self._envs.single_observation_space)
        self.spec_action = leaves_of(self._envs.single_action_space)
        self._seed = seed
        self._episodes = EpisodeCounter(num_envs)
        self._final = np.zeros(num_envs, np.bool_)

    def reset(self) -> StepRows:
        try:
            observation, _ = self._envs.reset(seed=self._seed)
        except Exception as error:
            raise EnvironmentFailure(f"reset raised {error!r}") from error
        self._seed = None  # a later reset goes on with the generators: it must not replay the same episodes
        self._episodes.reset()
        self._final = np.zeros(self.num_envs, np.bool_)
        return StepRows(
            observation=flatten(self._envs.single_observation_space, observation),
            rewards=np.zeros(self.num_envs, np.float32),
            terminated=self._final,
            truncated=self._final,
            is_first=np.ones(self.num_envs, np.bool_),
            episodes=[],
        )

    def step(self, actions: list[Array]) -> StepRows:
        try:
            batch = unflatten(self._envs.single_action_space, actions)
            observation, raw_rewards, terminated, truncated, _ = self._envs.step(batch)
        except Exception as error:
            raise EnvironmentFailure(f"step raised {error!r}") from error
        rewards = checked_rewards(raw_rewards)
        is_first = self._final
        self._final = terminated | truncated
        self._episodes.add(rewards, ~is_first)
        return StepRows(
            observation=flatten(self._envs.single_observation_space, observation),
            rewards=rewards,
            terminated=terminated.astype(np.bool_),
            truncated=truncated.astype(np.bool_),
            is_first=is_first,
            episodes=self._episodes.finish(self._final),
        )

    def render(self) -> Array:
        try:
            frames = np.stack(self._envs.render())  # type: ignore[arg-type]  # None only without a render mode
        except Exception as error:
            raise EnvironmentFailure(f"render raised {error!r}") from error
        if frames.dtype != np.uint8 or frames.ndim != 4 or frames.shape[3] != 3:
            raise EnvironmentFailure(f"render returned {frames.dtype} {list(frames.shape)}, not uint8 [B, H, W, 3]")
        return frames

    def close(self) -> None:
        self._envs.close()
