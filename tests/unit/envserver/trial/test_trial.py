"""`kubebeast-envserver check` plays an environment as an env-server does, and reports all faults at once."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

from kubebeast_common.settings import ConfigError
from kubebeast_common.spec.env_config import parse_wrappers
from kubebeast_common.spec.leaves import Leaf
from kubebeast_envserver.__main__ import main
from kubebeast_envserver.trial.settings import TrialConfig
from kubebeast_envserver.trial.trial import Trial, random_actions, try_env

MODULE = """
import gymnasium
import numpy as np
class Tried(gymnasium.Env):
    def __init__(self, how="well"):
        small = gymnasium.spaces.Box(-1.0, 1.0, (2,), np.float16 if how == "spaces" else np.float32)
        self.observation_space = gymnasium.spaces.Dict({"a": small, "b": gymnasium.spaces.Discrete(3)})
        self.action_space = gymnasium.spaces.Text(3) if how == "spaces" else gymnasium.spaces.Discrete(2)
        self.how = how
    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        print("a new episode")
        return self.observe(), {}
    def step(self, action):
        self.steps += 1
        if self.how == "raises" and self.steps == 4:
            raise RuntimeError("the emulator is on fire")
        reward = {"nan": float("nan"), "large": 1e39 * self.steps}.get(self.how, 1.0)
        if self.how == "old":
            return self.observe(), reward, self.steps == 5, {}
        return self.observe(), reward, self.steps == 5, False, {}
    def observe(self):
        fill = np.nan if self.how == "nan" else 0.5
        return {"a": np.full(2, fill, np.float64 if self.how == "nan" else np.float32), "b": 1}
class Large(gymnasium.Env):
    def __init__(self, space, size):
        spaces = gymnasium.spaces
        self.observation_space = {
            "image": lambda: spaces.Box(0, 255, (size, size, 3), np.uint8),
            "categories": lambda: spaces.Discrete(size),
            "leaves": lambda: spaces.Tuple([spaces.Discrete(2)] * size),
            "key": lambda: spaces.Dict({"k" * size: spaces.Discrete(2)}),
            "mask": lambda: spaces.Dict({"x": spaces.Discrete(3), "action_mask": spaces.MultiBinary(size)}),
            "text": lambda: spaces.Dict({"x": spaces.Discrete(3), "mission": spaces.Text(size)}),
        }[space]()
        self.action_space = gymnasium.spaces.Discrete(2)
        self.observation = self.observation_space.sample()
    def reset(self, *, seed=None, options=None):
        return self.observation, {}
    def step(self, action):
        return self.observation, 0.0, False, False, {}
gymnasium.register("Tried-v0", entry_point=Tried, disable_env_checker=True)
gymnasium.register("Large-v0", entry_point=Large, disable_env_checker=True)
"""
ENV = "tried_env:Tried-v0"


@pytest.fixture(autouse=True)
def tried_env(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Makes the module tried_env importable."""
    (tmp_path / "tried_env.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(gymnasium.envs.registration, "registry", dict(gymnasium.registry))
    yield
    sys.modules.pop("tried_env", None)


def checked(how: str, **settings: Any) -> dict[str, int]:
    """Returns the count of each violation."""
    config = TrialConfig(env=ENV, env_kwargs={"how": how}, **{"steps": 30, **settings})
    return {violation.text: violation.count for violation in try_env(config).violations}


def test_what_is_well_is_described(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", ENV, "--steps", "30", "--time-limit", "3"]) == 0
    captured = capsys.readouterr()
    shown = [f"{ENV} with preset none, time limit 3", "observation.a  float32  [2]", "3 categories  8"]
    shown += ["30 random steps", "10 episodes of 3 to 3 steps, mean 3.0; 0 terminated, 10 truncated; mean return 3.00"]
    shown += ["sent: ", " bytes a step", "no violations"]
    assert [part for part in shown if part not in captured.out] == []
    assert "a new episode" in captured.err and "a new episode" not in captured.out


def test_json_says_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", ENV, "--episodes=2", '--env-kwargs={"how": "nan"}', "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert (told["env"], told["steps"], len(told["episodes"]), len(told["violations"])) == (ENV, 10, 2, 3)
    assert told["bytes_per_step"] == told["compressed_bytes_per_step"] > 20 and told["steps_per_s"] > 0
    assert [leaf["path"] for leaf in told["observation"]] == ["a", "b"]


def large(space: str, size: int, **settings: Any) -> Trial:
    kwargs = {"space": space, "size": size}
    return try_env(TrialConfig(env="tried_env:Large-v0", env_kwargs=kwargs, **{"steps": 2, **settings}))


@pytest.mark.parametrize(
    ("space", "size", "text"),
    [
        ("image", 4800, "a row has 69,120,008 bytes, more than a message of max_message_mib = 64"),
        ("categories", 2**31, "the observation has 2,147,483,648 categories"),
        ("leaves", 300, "the space has more than 256 leaves"),
        ("key", 300, "its path has 300 bytes, at most 255 can be sent"),
        ("mask", 3, "the action mask at 'action_mask' is int8 [3], but a mask of Discrete(2) has whole numbers [2]"),
    ],
)
def test_what_training_refuses_is_a_violation(space: str, size: int, text: str) -> None:
    trial = large(space, size)
    assert [violation.text for violation in trial.violations if text in violation.text] != []


def test_a_learner_may_take_larger_messages() -> None:
    (violation,) = large("image", 700, max_message_mib=1).violations
    assert "a row has 1,470,008 bytes" in violation.text and "--max-message-mib 2 or" in violation.text
    assert large("image", 700, max_message_mib=2).violations == []


def test_an_id_that_no_learner_takes_is_a_violation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(gymnasium.envs.registration.registry, "Tried" * 60 + "-v0", gymnasium.spec("CartPole-v1"))
    trial = try_env(TrialConfig(env="Tried" * 60 + "-v0", steps=2))
    assert [violation.text for violation in trial.violations] == [
        "a learner takes ids of at most 253 printable ASCII characters"
    ]


def test_advice_is_a_note_and_no_violation(capsys: pytest.CaptureFixture[str]) -> None:
    kwargs = json.dumps({"space": "text", "size": 8})
    assert main(["check", "tried_env:Large-v0", "--steps", "3", "--env-kwargs", kwargs]) == 0
    assert "note: the observation at 'mission' is a text, which is not sent" in capsys.readouterr().out
    trial = try_env(TrialConfig(env=ENV, steps=3, wrappers=parse_wrappers("gymnasium.wrappers:NormalizeReward")))
    assert len(trial.notes) == 1 and "NormalizeReward: statistics of each environment" in trial.notes[0]


def test_frames_are_counted_as_they_are_sent_and_compressed() -> None:
    trial = try_env(TrialConfig(env="Mock", steps=50))
    assert 84 * 84 < trial.bytes_per_step < 1.2 * 84 * 84 > 5 * trial.compressed_bytes_per_step


def test_it_goes_on_after_violations_and_counts_them() -> None:
    reward = "step returned the reward nan: it must be a finite float32"
    observation = "the observation at a holds nan, which is no finite float32"
    assert checked("nan") == {f"reset: {observation}": 6, observation: 30, reward: 30}


def test_violations_that_differ_in_numbers_alone_are_one() -> None:
    assert checked("large") == {"step returned the reward 1e+39: it must be a finite float32": 30}
    trial = Trial()
    for text in (
        "the observation at 0 holds inf",
        "the observation at 1 holds inf",
        "the observation at a.0 holds 1e39",
    ):
        trial.note(text)
    assert len(trial.violations) == 3


def test_the_interface_of_gym_is_one_violation() -> None:
    ((text, count),) = checked("old").items()
    assert text.startswith("step returned 4 values (observation, reward, done, info): the environment has gym's")
    assert count == 30


def test_an_environment_that_raises_is_given_up_as_by_an_env_server() -> None:
    trial = try_env(TrialConfig(env=ENV, env_kwargs={"how": "raises"}, steps=30))
    told = [(violation.text, violation.count, violation.after_steps) for violation in trial.violations]
    assert told == [("step raised RuntimeError: the emulator is on fire (tried_env.py, line 18)", 3, 3)]
    assert trial.given_up and trial.steps == 9


def test_all_of_both_spaces_that_cannot_be_sent_is_named() -> None:
    texts = list(checked("spaces"))
    assert [text.split(" Box")[0].split(" Text")[0] for text in texts] == [
        "observation space: at 'a': the space",
        "action space: the space",
    ]


@pytest.mark.parametrize(
    ("how", "text"),
    [("nan", "observation at a holds nan"), ("spaces", "Text space"), ("raises", "emulator is on fire")],
)
def test_a_vector_ends_at_its_first_violation(how: str, text: str) -> None:
    config = TrialConfig(env=ENV.replace(":", ":vector/"), env_kwargs={"how": how}, steps=30)
    (violation,) = try_env(config).violations
    assert (text in violation.text, violation.count) == (True, 1)


def test_random_actions_are_allowed_ones_of_every_kind() -> None:
    leaves = [
        Leaf("a", "int64", (), num_categories=3),
        Leaf("b", "int8", (2,), num_categories=2),
        Leaf("c", "float32", (2,), bounded=True),
        Leaf("d", "float32", (2,)),
    ]
    allowed = np.array([[0, 1, 1, 1, 0, 1, 1]] * 500, np.bool_)
    a, b, c, d = random_actions(leaves, allowed, 500, np.random.default_rng(0))
    assert [array.dtype for array in (a, b, c, d)] == [np.int64, np.int8, np.float32, np.float32]
    assert (set(a), set(b[:, 0]), set(b[:, 1])) == ({1, 2}, {0}, {0, 1})
    assert 0.9 < np.abs(c).max() <= 1.0 < np.abs(d).max()
    (free, *_) = random_actions(leaves, None, 500, np.random.default_rng(0))
    assert set(free) == {0, 1, 2}


def test_an_environment_that_cannot_be_made_is_a_violation() -> None:
    (text,) = checked("well", wrappers=parse_wrappers('[{"tried_env:Tried": {"what": 1}}]'))
    assert text.startswith("wrappers = 'tried_env:Tried") and "raised TypeError" in text


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"env": "NoSuchGame-v0"}, "env = 'NoSuchGame-v0'"),
        ({"env": ENV, "wrappers": parse_wrappers("nowhere:B")}, "wrappers = 'nowhere:B': there is no module nowhere"),
        ({"env": "PongNoFrameskip-v4", "env_kwargs": {"stick": 1}}, "env_kwargs = 'stick'"),
        ({"env": ENV, "steps": 0}, "steps = 0: must be at least 1"),
        ({"env": ENV, "time_limit": -1}, "time_limit = -1: must not be negative"),
    ],
)
def test_settings_that_make_no_environment_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        try_env(TrialConfig(**settings))


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["NoSuchGame-v0"], "env = 'NoSuchGame-v0'"),
        ([ENV, "--steps=0"], "steps = 0: must be at least 1"),
        ([ENV, "--env-kwargs=[]"], "env_kwargs = []: must be a JSON object"),
        ([ENV, "--wrappers=:"], "wrappers = ':'"),
    ],
)
def test_the_command_refuses_settings_in_one_line(
    words: list[str], error: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", *words]) == 2
    line = capsys.readouterr().err.splitlines()[-1]
    assert line.startswith("kubebeast-envserver: ") and error in line
