"""Masks of legal actions are found in observations and infos, and no illegal action is played."""

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from kubebeast_common.spec.leaves import Leaf
from kubebeast_envserver import ActionMaskFromInfo, EnvironmentFailure, HostedEnv, Wrapper, make_vector_env
from kubebeast_envserver.rows.advice import collected

LENGTH = 4
ENV = f"{__name__}:Chess-v0"


class Chess(gymnasium.Env[dict[str, Any], Any]):
    """An episode has LENGTH steps. There are no legal actions at its end and at the step `stuck_at`."""

    def __init__(self, stuck_at: int = LENGTH, key: str = "action_mask") -> None:
        board = spaces.Box(0.0, 1.0, (2,))
        self.observation_space = spaces.Dict({"board": board, key: spaces.Box(0, 1, (5,), np.int8)})
        self.action_space = spaces.MultiDiscrete([2, 3])
        self._stuck = {stuck_at, LENGTH}
        self._key = key
        self._num_steps = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[dict[str, Any], dict[str, Any]]:
        self._num_steps = 0
        return self._observation(), {}

    def step(self, action: Any) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        self._num_steps += 1
        return self._observation(), 0.0, self._num_steps == LENGTH, False, {}

    def _observation(self) -> dict[str, Any]:
        mask = [1, 0, 0, 0, 0] if self._num_steps in self._stuck else [0, 1, 0, 1, 1]
        return {"board": np.zeros(2, np.float32), self._key: np.array(mask, np.int8)}


gymnasium.register("Chess-v0", entry_point=f"{__name__}:Chess", disable_env_checker=True)
ACTIONS = [np.zeros(1, np.int64), np.zeros(1, np.int64)]


def test_the_mask_travels_as_bools_and_frees_what_nobody_takes() -> None:
    env = make_vector_env(ENV, 1)
    assert env.spec_observation[0] == Leaf("action_mask", "bool", (5,), is_action_mask=True)
    masks = [env.reset().observation[0]]
    masks += [env.step(ACTIONS).observation[0] for _ in range(LENGTH)]
    assert {mask.dtype for mask in masks} == {np.dtype(np.bool_)}
    assert masks[0].astype(int).tolist() == [[0, 1, 0, 1, 1]]
    assert masks[LENGTH].astype(int).tolist() == [[1, 0, 1, 1, 1]]


def test_an_environment_without_a_legal_action_fails_and_says_so() -> None:
    env = make_vector_env(ENV, 1, env_kwargs={"stuck_at": 2})
    env.reset()
    env.step(ACTIONS)
    rows = env.step(ACTIONS)
    assert rows.interrupted.tolist() == [True]
    assert rows.observation[0].all(), "a row that only keeps its place leaves the learner a choice"
    with pytest.raises(EnvironmentFailure, match=r"environment 0 failed: the action mask at .* allows .* choice 1"):
        rows.require_whole()


class Forbidding(gymnasium.Env[dict[str, Any], Any]):
    """Raises at an action that its mask forbids; the mask is a tuple or dict, as in gymnasium's sampling."""

    def __init__(self, form: str = "tuple", where: str = "observation") -> None:
        """Place of the mask: observation, info, agent (a Dict in the observation), beside (in no space), or final
        (absent then).
        """
        nvec = [3, 2]
        masks = spaces.Tuple([spaces.MultiBinary(n) for n in nvec])
        self.action_space: spaces.Space[Any] = spaces.MultiDiscrete(nvec, start=[5, -1])
        self._mask_space: spaces.Space[Any] = masks
        if form == "dict":
            self.action_space = spaces.Dict({"b": spaces.Discrete(3), "a": spaces.Discrete(2, start=4)})
            self._mask_space = spaces.Dict({"b": spaces.MultiBinary(3), "a": spaces.MultiBinary(2)})
        self._where = where
        board: dict[str, spaces.Space[Any]] = {"board": spaces.Box(0.0, 1.0, (2,))}
        self.observation_space = spaces.Dict(board)
        if where in ("observation", "agent"):
            self.observation_space = spaces.Dict({**board, "action_mask": self._mask_space})
        if where == "agent":
            self.observation_space = spaces.Dict({"agent": self.observation_space})
        self._num_steps = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[dict[str, Any], dict[str, Any]]:
        super().reset(seed=seed)
        self._mask_space.seed(seed)
        self._num_steps = 0
        return self._told(is_over=False)

    def step(self, action: Any) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        assert self.action_space.contains(action), action
        chosen = [action["b"], action["a"] - 4] if isinstance(action, dict) else [action[0] - 5, action[1] + 1]
        if not all(mask[number] for mask, number in zip(self._masks, chosen, strict=True)):
            raise ValueError(f"{chosen} is forbidden by {self._masks}")
        self._num_steps += 1
        is_over = self._num_steps == LENGTH
        observation, info = self._told(is_over=is_over)
        return observation, 1.0, is_over, False, info

    def _told(self, *, is_over: bool) -> tuple[dict[str, Any], dict[str, Any]]:
        self._masks = []
        for size in (3, 2):
            mask = self.np_random.integers(2, size=size, dtype=np.int8)
            mask[self.np_random.integers(size)] = 1
            self._masks.append(mask)
        told: Any = (
            tuple(self._masks)
            if isinstance(self._mask_space, spaces.Tuple)
            else dict(zip("ba", self._masks, strict=True))
        )
        observation: dict[str, Any] = {"board": np.zeros(2, np.float32)}
        if self._where in ("info", "final"):
            return observation, {} if is_over and self._where == "final" else {"action_mask": told}
        observation["action_mask"] = told
        return ({"agent": observation} if self._where == "agent" else observation), {}


gymnasium.register("Forbidding-v0", entry_point=f"{__name__}:Forbidding", disable_env_checker=True)
FORBIDDING = f"{__name__}:Forbidding-v0"
FROM_INFO = [Wrapper("kubebeast_envserver:ActionMaskFromInfo")]


def allowed_actions(leaves: list[Leaf], masks: Any, generator: np.random.Generator) -> list[Any]:
    """Returns random allowed actions: one array [B] for each leaf of one choice."""
    actions, start = [], 0
    for leaf in leaves:
        choices = masks[:, start : start + leaf.num_categories]
        actions.append(np.array([generator.choice(np.flatnonzero(row)) for row in choices]))
        start += leaf.num_categories
    return actions


def play_allowed(env: HostedEnv, num_steps: int = 40) -> None:
    """Makes random steps that the mask allows, through whole episodes. Fails if one was forbidden."""
    (index,) = (index for index, leaf in enumerate(env.spec_observation) if leaf.is_action_mask)
    generator = np.random.default_rng(0)
    rows = env.reset()
    num_episodes = 0
    for _ in range(num_steps):
        rows = env.step(allowed_actions(env.spec_action, rows.observation[index], generator))
        rows.require_whole()
        num_episodes += len(rows.episodes)
    assert num_episodes >= num_steps // (LENGTH + 1)


@pytest.mark.parametrize("form", ["tuple", "dict"])
@pytest.mark.parametrize(
    ("where", "prefix", "wrappers"),
    [
        ("observation", "", []),
        ("observation", "vector/", []),
        ("agent", "", []),
        ("agent", "vector/", []),
        ("info", "", FROM_INFO),
        ("final", "", FROM_INFO),
    ],
)
def test_forbidden_actions_are_never_chosen_whatever_form_the_mask_has(
    form: str, where: str, prefix: str, wrappers: list[Wrapper]
) -> None:
    env_id = FORBIDDING.replace(":", f":{prefix}")
    env = make_vector_env(env_id, 2, env_kwargs={"form": form, "where": where}, seed=1, wrappers=wrappers)
    play_allowed(env)
    env.close()


@pytest.mark.parametrize("prefix", ["", "vector/"])
def test_a_mask_that_nothing_obeys_is_advised_of_once(prefix: str) -> None:
    with collected() as advice:
        env = make_vector_env(FORBIDDING.replace(":", f":{prefix}"), 2, env_kwargs={"where": "info"}, seed=1)
        env.reset()
        env.reset()
    assert len(advice) == 1 and "info has 'action_mask', which has no effect" in advice[0]


def test_a_mask_that_the_space_does_not_have_is_a_failure() -> None:
    env = make_vector_env(FORBIDDING, 1, env_kwargs={"where": "beside"}, seed=1)
    with pytest.raises(EnvironmentFailure, match="the observation has 'action_mask', its space has not"):
        env.reset().require_whole()


def test_a_leaf_of_another_name_is_an_observation_like_others() -> None:
    env = make_vector_env(ENV, 1, env_kwargs={"key": "legal"})
    assert env.spec_observation[1] == Leaf("legal", "int8", (5,))


def test_a_mask_in_info_becomes_a_part_of_the_observation() -> None:
    env = ActionMaskFromInfo(gymnasium.make("Taxi-v4"))
    observation, info = env.reset(seed=1)
    assert observation in env.observation_space
    assert observation["action_mask"].tolist() == info["action_mask"].tolist()
    observation, *_, info = env.step(int(observation["action_mask"].argmax()))
    assert observation["action_mask"].tolist() == info["action_mask"].tolist()


def test_an_info_without_a_mask_names_what_there_is() -> None:
    env = ActionMaskFromInfo(gymnasium.make("CartPole-v1"))
    with pytest.raises(ValueError, match="info has no 'action_mask', only nothing"):
        env.reset()


@pytest.mark.parametrize(
    ("mask", "message"),
    [
        (np.array([0.5, 0.5]), r"'info\.action_mask' is float64 \[2\].*probabilities are no mask"),
        (np.ones(3, np.int8), r"is int8 \[3\], but a mask of Discrete\(2\) has whole numbers \[2\]"),
        ((np.ones(2, np.int8),), "is a tuple of 1"),
        (np.array([1, -1]), "holds -1; 0 forbids"),
    ],
)
def test_a_mask_in_info_of_another_form_is_named(monkeypatch: pytest.MonkeyPatch, mask: Any, message: str) -> None:
    plain = gymnasium.make("CartPole-v1")
    env = ActionMaskFromInfo(plain)
    monkeypatch.setattr(plain, "reset", lambda **_: (np.zeros(4, np.float32), {"action_mask": mask}))
    with pytest.raises(ValueError, match=message):
        env.reset()


def test_a_mask_in_info_needs_a_choice() -> None:
    with pytest.raises(ValueError, match="needs an action space with categories, not Box"):
        ActionMaskFromInfo(gymnasium.make("Pendulum-v1"))
