"""A wrapper for environments with the action mask in `info`, such as Taxi-v4."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from kubebeast_envserver.rows.action_mask import PATH
from kubebeast_envserver.rows.mask_forms import Form, MaskPlan, elements, form_of_value, num_categories


class ActionMaskFromInfo(gymnasium.Wrapper[dict[str, Any], Any, Any, Any]):
    """Puts the action mask of `info` into the observation, {"observation": ..., "action_mask": ...}.

    The mask is int8 [n], one number per category. info["action_mask"] has any form that the action space takes in
    Space.sample(mask=...), or that of the observation. An info without the key counts as a failure of the environment,
    except in a row that ends its episode.
    """

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        """Wraps `env`.

        Raises:
            ValueError: The action space has no categories.
        """
        super().__init__(env)
        self._num_categories = num_categories(env.action_space)
        if self._num_categories == 0:
            raise ValueError(f"ActionMaskFromInfo needs an action space with categories, not {env.action_space}")
        mask = spaces.MultiBinary(self._num_categories)
        self.observation_space = spaces.Dict({"observation": env.observation_space, PATH: mask})
        self._form: Form = ()
        self._plan: MaskPlan | None = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        observation, info = self.env.reset(seed=seed, options=options)
        return self._with_mask(observation, info, is_over=False), info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, info = self.env.step(action)
        is_over = bool(terminated or truncated)
        return self._with_mask(observation, info, is_over=is_over), reward, terminated, truncated, info

    def _with_mask(self, observation: Any, info: dict[str, Any], *, is_over: bool) -> dict[str, Any]:
        if info.get(PATH) is not None:
            mask = self._flat(info[PATH])
        elif is_over:
            mask = np.ones(self._num_categories, np.int8)
        else:
            raise ValueError(f"info has no {PATH!r}, only {', '.join(map(repr, info)) or 'nothing'}")
        return {"observation": observation, PATH: mask}

    def _flat(self, mask: Any) -> NDArray[np.int8]:
        """Returns the mask as int8 [n]. Raises ValueError for a mask of a form that the action space does not take."""
        form = form_of_value(mask)
        if self._plan is None or form != self._form:
            self._form, self._plan = form, MaskPlan(self.env.action_space, form, f"info.{PATH}")
        given = elements(form, mask, 1)
        if (given < 0).any():
            raise ValueError(f"info[{PATH!r}] holds {given.min()}; 0 forbids a category and 1 allows it")
        flat: NDArray[np.int8] = self._plan.allowed(given)[0].astype(np.int8)
        return flat
