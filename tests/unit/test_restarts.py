"""A process that dies is started again after growing waits, and given up when it keeps dying young."""

from dataclasses import dataclass

from kubebeast_learner.restarts import MAX_QUICK_DEATHS, QUICK_DEATH_S, RestartPolicy


@dataclass
class Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


def test_waits_double_until_the_process_is_given_up() -> None:
    policy = RestartPolicy(Clock())
    waits = []
    for _ in range(MAX_QUICK_DEATHS):
        policy.note_start()
        waits.append(policy.note_death())
    assert waits == [1.0, 2.0, None]
    assert policy.num_starts == MAX_QUICK_DEATHS


def test_a_long_life_is_forgiven_its_predecessors() -> None:
    clock = Clock()
    policy = RestartPolicy(clock)
    for _ in range(3 * MAX_QUICK_DEATHS):
        policy.note_start()
        clock.now += QUICK_DEATH_S
        assert policy.note_death() == 1.0


def test_a_process_is_due_when_its_wait_is_over() -> None:
    clock = Clock()
    policy = RestartPolicy(clock)
    policy.note_start()
    policy.note_death()
    assert not policy.is_due
    clock.now = 1.0
    assert policy.is_due
