"""Training continues while env-servers and their network fail at random, and every env-step is accounted for."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from harness.chaos import serial_env, serials, witness
from harness.chaos.books import imbalance
from harness.processes.learner_process import LearnerProcess
from tests.integration.chaos import storm
from tests.integration.chaos.native_training import NativeTraining
from tests.integration.chaos.storm import Fault, Target

NUM_PLACES = 3
NUM_ENVS = 2
BATCHES_BETWEEN_EVENTS = 60
NUM_FAULTS = 12
STEPS_BETWEEN_EVENTS = 300
ENV_MS = 5.0
"""Time of a step beside a learner: a fault is noticed after seconds, in which the others would use the whole
machine.
"""
SEED = 4
LEARNER_FLAGS = [
    *witness.FLAGS,
    "--unroll-length=5",
    "--batch-size=4",
    "--step-timeout-s=1",
    "--log-interval-s=0.1",
    "--checkpoint-interval-minutes=0.01",
]


@dataclass(frozen=True, slots=True)
class Theatre:
    training: NativeTraining
    targets: list[Target]
    folder: Path

    def wait_for_progress(self) -> None:
        self.training.wait_for_batches(BATCHES_BETWEEN_EVENTS)

    def assert_recovers(self) -> None:
        """Asserts that every place plays again, no slot is lost, and steps were delivered once, whole and in order."""
        self.training.wait_until(lambda: self.training.pool.stats()["streams"] == NUM_PLACES)
        before = self.decisions()
        self.training.wait_until(lambda: bool((self.decisions() > before).all()))
        stats, tally = self.training.pool.stats(), self.training.tally()
        assert (stats["streams"], stats["envs"]) == (NUM_PLACES, NUM_PLACES * NUM_ENVS)
        assert imbalance(stats) == 0
        assert (tally.duplicated, tally.torn) == (0, 0)
        assert 0 < tally.delivered <= self.decisions().sum()

    def decisions(self) -> NDArray[np.int64]:
        """Returns the decisions by the environments of each place, by their own count, int64 [NUM_PLACES]."""
        accounts = serial_env.accounts(self.folder)
        return np.bincount(accounts["place"], accounts["decisions"], NUM_PLACES).astype(np.int64)


@pytest.fixture(scope="module")
def theatre(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Theatre]:
    folder = tmp_path_factory.mktemp("chaos")
    with NativeTraining() as training, storm.fleet(training.address, folder, NUM_PLACES, NUM_ENVS) as targets:
        training.open()
        training.wait_until(lambda: training.pool.stats()["streams"] == NUM_PLACES)
        yield Theatre(training, targets, folder)


@pytest.mark.parametrize(
    "fault", [fault for fault in Fault if fault is not Fault.SLOW], ids=lambda fault: fault.name.lower()
)
def test_a_fault_that_lasts_costs_its_own_stream_only(theatre: Theatre, fault: Fault) -> None:
    victim, pool = theatre.targets[0], theatre.training.pool

    victim.strike(fault)
    try:
        theatre.training.wait_until(lambda: pool.stats()["streams"] == NUM_PLACES - 1)
        theatre.wait_for_progress()
    finally:
        victim.heal(fault)

    theatre.assert_recovers()


def test_a_slow_network_slows_nobody_else_down(theatre: Theatre) -> None:
    before = theatre.decisions()

    theatre.targets[0].strike(Fault.SLOW)
    theatre.wait_for_progress()
    gained = theatre.decisions() - before
    theatre.targets[0].heal(Fault.SLOW)

    assert gained[1:].min() > 3 * gained[0]
    theatre.assert_recovers()


def test_training_goes_on_through_a_storm_of_faults_and_recovers_from_it(theatre: Theatre) -> None:
    storm.unleash(storm.draw(SEED, NUM_PLACES, NUM_FAULTS), theatre.targets, theatre.wait_for_progress)

    theatre.assert_recovers()


@pytest.mark.slow
def test_a_learner_comes_through_a_storm_and_its_own_death_and_its_env_servers_stay(tmp_path: Path) -> None:
    with (
        LearnerProcess(tmp_path, *LEARNER_FLAGS, warm=True) as learner,
        storm.fleet(learner.address, tmp_path, NUM_PLACES, NUM_ENVS, env_ms=ENV_MS) as targets,
    ):
        learner.wait_until(lambda values: values["streams"] == NUM_PLACES)
        events = storm.draw(SEED, NUM_PLACES, 6)
        storm.unleash(events, targets, lambda: learner.wait_for_steps(STEPS_BETWEEN_EVENTS))
        learner.wait_until(lambda values: values["streams"] == NUM_PLACES and values["checkpoint_age_s"] is not None)
        assert imbalance(learner.books()) == 0
        pids = [target.server.pid for target in targets]

        learner.kill()
        killed_at = learner.newest["step"]
        learner.start()
        learner.wait_until(lambda values: values["streams"] == NUM_PLACES)
        learner.wait_for_steps(STEPS_BETWEEN_EVENTS)

        assert imbalance(learner.books()) == 0
        assert [target.server.pid for target in targets] == pids
        assert learner.terminate() == 0
    (resumed_step,) = learner.resumed_steps()
    assert 0 < resumed_step <= killed_at
    lives = witness.testimony(tmp_path)
    tally = serials.tally(lives)
    assert (len(lives), tally.duplicated, tally.torn) == (2, 0, 0)
    assert tally.delivered + tally.unreadable >= killed_at + learner.newest["step"] - resumed_step
    assert learner.errors() == []
