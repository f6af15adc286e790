"""Calls are counted, even if they are slow."""

from kubebeast_learner.tune.timing import LEAST_CALLS, WARMUP_CALLS, time_calls


def test_calls_that_take_longer_than_there_is_time_are_made_a_few_times() -> None:
    calls: list[int] = []
    result = time_calls(lambda: calls.append(sum(range(1000))), seconds=0.0)

    assert len(calls) == WARMUP_CALLS + LEAST_CALLS
    assert result.wall_s > 0


def test_calls_are_repeated_while_there_is_time() -> None:
    calls: list[None] = []
    time_calls(lambda: calls.append(None), seconds=0.01)

    assert len(calls) > WARMUP_CALLS + LEAST_CALLS
