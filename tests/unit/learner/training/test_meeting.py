"""The first peer with an environment that has a model determines the environment of a training."""

import logging
import threading
from collections.abc import Sequence

import pytest

from kubebeast_common.spec.env_spec import EnvSpec
from kubebeast_common.spec.leaves import Leaf
from kubebeast_learner.config import ConfigError, LossConfig, ModelConfig, TrainingConfig
from kubebeast_learner.ranks.place import ALONE
from kubebeast_learner.training.meeting import MAX_REASON_CHARS, meet_environment
from kubebeast_learner.training.monitor import Monitor
from tests.unit.learner.training.scripted_actors import ScriptedActors

GOOD = EnvSpec("Good-v0", (Leaf("", "float32", (4,), 1, 0),), (Leaf("", "int64", (), 1, 3),))
BOMB = EnvSpec("Bomb-v0", GOOD.observation, (Leaf("", "int64", (), 1, 10**9),))
MANY_LEAVES = EnvSpec("Many-v0", tuple(Leaf(f"{'x' * 200}{i}", "uint8", (0,), 1, 0) for i in range(256)), GOOD.action)


class Visitors(ScriptedActors):
    """Offers one environment after the other, each as soon as the previous one is refused."""

    def __init__(self, specs: Sequence[EnvSpec], *, is_environment_named: bool = False) -> None:
        super().__init__()
        self.is_environment_named = is_environment_named
        self.reasons: list[str] = []
        self._specs = specs

    def wait_env_spec(self, timeout_ms: int) -> EnvSpec | None:
        if len(self.reasons) == len(self._specs):
            self.stop_asked.set()
            return None
        return self._specs[len(self.reasons)]

    def refuse(self, reason: str) -> None:
        self.reasons.append(reason)


def meet(actors: Visitors, config: TrainingConfig | None = None) -> EnvSpec | None:
    met = meet_environment(config or TrainingConfig(), actors, Monitor(), ALONE, 0, actors.stop_asked)
    return None if met is None else met.spec


def test_an_environment_without_a_model_is_refused_and_the_next_one_is_taken(caplog: pytest.LogCaptureFixture) -> None:
    actors = Visitors([BOMB, MANY_LEAVES, GOOD])
    assert meet(actors) is GOOD
    assert "numbers, at most" in actors.reasons[0] and "no element" in actors.reasons[1]
    refusals = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert [record.getMessage().split(":")[0] for record in refusals] == [
        "refusing the env-servers of Bomb-v0 and waiting for others",
        "refusing the env-servers of Many-v0 and waiting for others",
    ]


def test_a_reason_is_short_enough_for_a_status() -> None:
    actors = Visitors([MANY_LEAVES, GOOD])
    meet(actors)
    assert len(actors.reasons[0]) == MAX_REASON_CHARS


def test_a_named_environment_without_a_model_ends_the_run() -> None:
    actors = Visitors([BOMB, GOOD], is_environment_named=True)
    with pytest.raises(ConfigError, match="numbers, at most"):
        meet(actors)
    assert actors.reasons == []


@pytest.mark.parametrize(
    "config",
    [
        TrainingConfig(model=ModelConfig(model="no.such.module:Net")),
        TrainingConfig(model=ModelConfig(encoder=(".=no.such.module:Net",))),
        TrainingConfig(loss=LossConfig(loss="no.such.module:loss")),
    ],
)
def test_code_that_cannot_be_loaded_ends_the_run_whoever_comes(config: TrainingConfig) -> None:
    actors = Visitors([GOOD])
    with pytest.raises(ConfigError, match=r"no\.such\.module"):
        meet(actors, config)
    assert actors.reasons == []


def test_a_stop_ends_the_wait_for_the_next_env_server() -> None:
    actors = Visitors([BOMB])
    assert meet(actors) is None
    assert isinstance(actors.stop_asked, threading.Event)
