"""Failures are retried after growing waits, and too many of them within a window end the attempts."""

from kubebeast_common.backoff import STEADY_STEPS, Backoff, FaultPolicy, Repetitions, Retries


def test_back_off_doubles_within_its_limit_and_starts_again_after_success() -> None:
    backoff = Backoff(first_s=0.25, limit_s=15.0)
    ceilings = [min(15.0, 0.25 * 2**n) for n in range(10)]
    for ceiling in ceilings:
        assert ceiling / 2 <= backoff.next_delay_s() <= ceiling
    backoff.reset()
    assert backoff.next_delay_s() <= 0.25


def test_failures_are_too_many_only_within_the_window() -> None:
    moments = iter([0.0, 30.0, 61.0, 80.0])
    retries = Retries(FaultPolicy(max_failures=3, failure_window_s=60.0), clock=lambda: next(moments))
    assert [retries.note_failure(0) is None for _ in range(4)] == [False, False, False, True]


def test_a_failure_after_many_steps_begins_the_count_and_the_back_off_again() -> None:
    retries = Retries(FaultPolicy(max_failures=3), clock=lambda: 0.0)
    for _ in range(10):
        delay_s = retries.note_failure(STEADY_STEPS)
        assert delay_s is not None
        assert delay_s <= 0.25
    assert retries.note_failure(STEADY_STEPS - 1) is not None
    assert retries.note_failure(STEADY_STEPS - 1) is None


def test_a_success_begins_the_count_and_the_back_off_again() -> None:
    retries = Retries(FaultPolicy(max_failures=2), clock=lambda: 0.0)
    for num_failures in range(1, 10):
        delay_s = retries.note_failure()
        assert delay_s is not None and delay_s <= 0.25
        assert retries.num_failures == num_failures
        retries.note_success()


def test_a_try_is_due_when_the_wait_is_over() -> None:
    moments = iter([5.0, 5.0, 5.1, 5.25])
    retries = Retries(FaultPolicy(), clock=lambda: next(moments))
    assert retries.is_due
    retries.note_failure()
    assert [retries.is_due, retries.is_due] == [False, True]


def test_a_repeated_text_is_news_again_after_a_while() -> None:
    moments = iter([0.0, 10.0, 29.0, 31.0, 32.0])
    repetitions = Repetitions(interval_s=30.0, clock=lambda: next(moments))
    texts = ["fire", "water", "water", "water", "fire"]
    assert [repetitions.is_news(text) for text in texts] == [True, True, False, False, True]
